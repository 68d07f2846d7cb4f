// upgrade: the version that a store has, the way to the current one, and going it.
#include "tools/commands/change/upgrade.h"

#include <nlohmann/json.hpp>

#include "store/store_directory.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/messages.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

struct Upgrade {
  uint32_t version = 0;
  std::vector<Migration> steps;
};

Result<Upgrade> find_upgrade(const std::string& path) {
  Upgrade upgrade;
  EMBER_ASSIGN(upgrade.version, StoreDirectory::stored_version(path));
  Result<std::vector<Migration>> steps =
      plan_upgrade(upgrade.version, kStoreVersion, known_migrations());
  if (!steps.ok()) return Error{steps.error().code, path + ": " + steps.error().message};
  upgrade.steps = std::move(steps).value();
  return upgrade;
}

const char* state_of(const Upgrade& upgrade, bool dry_run) {
  if (upgrade.steps.empty()) return "current";
  return dry_run ? "upgradable" : "upgraded";
}

void print_json(const std::string& path, const Upgrade& upgrade, bool dry_run, std::ostream& out) {
  Json steps = Json::array();
  for (const Migration& step : upgrade.steps) {
    steps.push_back({{"from", step.from}, {"to", step.to}, {"what", step.what}});
  }
  const Json json = {{"path", path},
                     {"state", state_of(upgrade, dry_run)},
                     {"version", upgrade.version},
                     {"current_version", kStoreVersion},
                     {"migrations", steps}};
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

void print_text(const std::string& path, const Upgrade& upgrade, bool dry_run, std::ostream& out) {
  out << path << ": version " << upgrade.version;
  if (upgrade.steps.empty()) {
    out << ", which is the current one: nothing to do" << std::endl;
    return;
  }
  out << ", the current one is " << kStoreVersion << '\n';
  for (const Migration& step : upgrade.steps) {
    out << (dry_run ? "would go from " : "went from ") << step.from << " to " << step.to << ": "
        << step.what << '\n';
  }
  out << std::flush;
}

}  // namespace

std::span<const Migration> known_migrations() { return {}; }

Result<std::vector<Migration>> plan_upgrade(uint32_t from, uint32_t to,
                                            std::span<const Migration> known) {
  std::vector<Migration> steps;
  uint32_t version = from;
  while (version < to) {
    // The longest step from here: a migration may skip versions.
    const Migration* next = nullptr;
    for (const Migration& step : known) {
      const bool fits = step.from == version && step.to > version && step.to <= to;
      if (fits && (next == nullptr || step.to > next->to)) next = &step;
    }
    if (next == nullptr) break;
    steps.push_back(*next);
    version = next->to;
  }
  if (version == to) return steps;
  return Error{ErrorCode::kUnsupported, "the store has version " + std::to_string(from) +
                                            ", this program reads " + std::to_string(to) +
                                            " and knows no way there" +
                                            (from > to ? ": use a newer program" : "")};
}

Result<int> run_upgrade(const UpgradeOptions& options, std::ostream& out) {
  const std::string path = options.store.empty() ? default_store_path() : options.store;
  Result<Upgrade> upgrade = find_upgrade(path);
  Status status = upgrade.ok() ? Status() : Status(upgrade.error());
  if (upgrade.ok() && !options.dry_run) {
    for (const Migration& step : upgrade->steps) {
      if (status.ok()) status = step.run(path);
    }
  }
  if (!status.ok()) {
    const std::string& reason = status.error().message;
    if (options.json) {
      const Json json = {{"path", path}, {"state", "unusable"}, {"reason", reason}};
      out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    }
    print_error(reason);
    return kExitFailed;
  }
  if (options.json) {
    print_json(path, *upgrade, options.dry_run, out);
  } else {
    print_text(path, *upgrade, options.dry_run, out);
  }
  return kExitOk;
}

}  // namespace ember
