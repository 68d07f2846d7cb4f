// forget: opens the store alone, forgets, and says what became of the bytes.
#include "tools/commands/forget.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "store/disk_plan.h"
#include "store/ram_plan.h"
#include "store/store_reader.h"
#include "tools/commands/engine_flags.h"
#include "tools/commands/exit_code.h"

namespace ember {
namespace {

constexpr uint64_t kMemtableBytes = 8u << 20;
constexpr uint64_t kCacheBytes = 8u << 20;

Result<ForgetReport> look_only(const std::string& path, const ForgetOptions& options) {
  EMBER_ASSIGN(const RestingParts view, RestingParts::open(path, options.encryption));
  return forget_scope(view.directory.get(), *view.disk, view.conversations.get(), options.request);
}

Result<ForgetReport> forget(const std::string& path, const ForgetOptions& options) {
  // First whether there is one: opening to write would make it.
  EMBER_TRY(RestingParts::open(path, options.encryption));
  EMBER_ASSIGN(const std::unique_ptr<StoreDirectory> directory,
               StoreDirectory::open(path, options.encryption));
  if (directory->read_only()) {
    return Error{ErrorCode::kIo, "nothing can be forgotten: " + why_not_writable(path)};
  }
  uint64_t disk_bytes = options.disk_bytes;
  if (disk_bytes == 0) {
    EMBER_ASSIGN(disk_bytes, default_disk_bytes(path));
  }
  EMBER_ASSIGN(const DiskPlan plan, plan_disk(disk_bytes));
  DiskTierOptions disk_options;
  disk_options.directory = path + "/blocks";
  disk_options.limit_bytes = plan.blocks_bytes;
  disk_options.memtable_bytes = kMemtableBytes;
  disk_options.block_cache_bytes = kCacheBytes;
  disk_options.sealer = directory->sealer();
  EMBER_ASSIGN(const std::unique_ptr<DiskTier> disk, DiskTier::open(disk_options));
  ConversationsOptions turns_options;
  turns_options.directory = path + "/conversations";
  turns_options.limit_bytes = plan.conversations_bytes;
  turns_options.sealer = directory->sealer();
  EMBER_ASSIGN(const std::unique_ptr<Conversations> turns, Conversations::open(turns_options));
  return forget_scope(directory.get(), *disk, turns.get(), options.request);
}

std::string fate_of_the_bytes(const ForgetReport& report, const ForgetRequest& request) {
  if (request.dry_run) return "nothing was changed";
  if (report.bytes_gone) return "no file of the store holds a byte of it any more";
  if (!report.reason.empty()) return "its bytes are still there: " + report.reason;
  const std::string key = report.keys > 0 ? "its key is destroyed, so nobody can read it; " : "";
  return key + "its bytes go when their " + std::to_string(report.epochs) +
         " epochs are retired to make room, or at once with --now";
}

void print_json(const ForgetReport& report, const ForgetRequest& request, std::ostream& out) {
  nlohmann::ordered_json json = {{"scope", request.all ? nullptr : nlohmann::json(request.scope)},
                                 {"dry_run", request.dry_run},
                                 {"blocks", report.blocks},
                                 {"blocks_below", report.blocks_below},
                                 {"tails", report.tails},
                                 {"conversations", report.conversations},
                                 {"stored_bytes", report.stored_bytes},
                                 {"keys_destroyed", report.keys},
                                 {"epochs", report.epochs},
                                 {"bytes_gone", report.bytes_gone}};
  if (!report.reason.empty()) json["reason"] = report.reason;
  out << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

void print_text(const ForgetReport& report, const ForgetRequest& request, std::ostream& out) {
  out << (request.dry_run ? "would forget " : "forgot ") << report.blocks << " blocks ("
      << human_bytes(report.stored_bytes) << ")";
  if (report.blocks_below > 0) out << ", " << report.blocks_below << " of others below them";
  out << ", " << report.tails << " tails, " << report.conversations << " conversations; "
      << fate_of_the_bytes(report, request) << std::endl;
}

}  // namespace

Result<int> run_forget(const ForgetOptions& options, std::ostream& out) {
  const std::string path = options.store.empty() ? default_store_path() : options.store;
  EMBER_ASSIGN(const ForgetReport report,
               options.request.dry_run ? look_only(path, options) : forget(path, options));
  if (options.json) {
    print_json(report, options.request, out);
  } else {
    print_text(report, options.request, out);
  }
  return report.reason.empty() ? kExitOk : kExitFailed;
}

}  // namespace ember
