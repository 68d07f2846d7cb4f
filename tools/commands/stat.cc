// stat: counts records, tails, conversations and bytes of a store at rest.
#include "tools/commands/stat.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/bytes.h"
#include "tools/commands/engine_flags.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/store_view.h"

namespace ember {
namespace {

struct StoreSummary {
  std::string path;
  bool encrypted = false;
  int holder_pid = 0;
  uint64_t blocks = 0;
  uint64_t tails = 0;
  uint64_t tokens = 0;
  uint64_t namespaces = 0;
  uint64_t conversations = 0;
  uint64_t epochs = 0;
  uint64_t raw_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t disk_bytes = 0;
  uint64_t blocks_bytes = 0;
  uint64_t conversations_bytes = 0;
  uint64_t unreadable_records = 0;
  uint64_t quarantined = 0;
  uint64_t quarantine_bytes = 0;
  std::string health;

  double ratio() const {
    return stored_bytes == 0 ? 0
                             : static_cast<double>(raw_bytes) / static_cast<double>(stored_bytes);
  }
};

Result<StoreSummary> summarise(const std::string& path, const EncryptionOptions& encryption) {
  EMBER_ASSIGN(const StoreView view, StoreView::open(path, encryption));
  EMBER_ASSIGN(const DiskTier::Listing listing, view.disk->list());
  EMBER_ASSIGN(const Conversations::TailListing tails, view.conversations->list_tails());
  EMBER_ASSIGN(const std::vector<Conversation> heads, view.conversations->list());
  StoreSummary summary;
  std::set<NamespaceHash> namespaces;
  const auto count = [&](const BlockRecord& record) {
    namespaces.insert(record.name_space);
    summary.tokens += record.tokens.size();
    summary.raw_bytes += record.raw_bytes();
    summary.stored_bytes += record.stored_bytes();
  };
  for (const RecordRow& row : listing.records) count(row.first);
  for (const BlockRecord& record : tails.records) count(record);
  summary.path = path;
  summary.encrypted = encryption.on;
  summary.holder_pid = view.directory->holder_pid();
  summary.blocks = listing.records.size();
  summary.tails = tails.records.size();
  summary.namespaces = namespaces.size();
  summary.conversations = heads.size();
  const DiskTierStats disk = view.disk->stats();
  summary.epochs = disk.epochs;
  summary.health = disk.health;
  const std::string obstacle = why_not_writable(path);
  if (summary.health == "ok" && !obstacle.empty()) summary.health = "reading only: " + obstacle;
  const std::string open_to_others = view.directory->open_to_others();
  if (summary.health == "ok" && !open_to_others.empty()) summary.health = open_to_others;
  summary.disk_bytes = directory_bytes(path);
  summary.blocks_bytes = directory_bytes(path + "/blocks");
  summary.conversations_bytes = directory_bytes(path + "/conversations");
  summary.unreadable_records = listing.unreadable + tails.unreadable;
  summary.quarantined = view.quarantine->stats().records;
  summary.quarantine_bytes = view.quarantine->stats().bytes;
  return summary;
}

void print_json(const StoreSummary& summary, std::ostream& out) {
  const nlohmann::ordered_json json = {{"path", summary.path},
                                       {"state", "ok"},
                                       {"version", kStoreVersion},
                                       {"encrypted", summary.encrypted},
                                       {"holder_pid", summary.holder_pid},
                                       {"blocks", summary.blocks},
                                       {"tails", summary.tails},
                                       {"tokens", summary.tokens},
                                       {"namespaces", summary.namespaces},
                                       {"conversations", summary.conversations},
                                       {"epochs", summary.epochs},
                                       {"raw_bytes", summary.raw_bytes},
                                       {"stored_bytes", summary.stored_bytes},
                                       {"compression_ratio", summary.ratio()},
                                       {"disk_bytes", summary.disk_bytes},
                                       {"blocks_bytes", summary.blocks_bytes},
                                       {"conversations_bytes", summary.conversations_bytes},
                                       {"unreadable_records", summary.unreadable_records},
                                       {"quarantined", summary.quarantined},
                                       {"quarantine_bytes", summary.quarantine_bytes},
                                       {"health", summary.health}};
  out << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

void print_table(const StoreSummary& summary, std::ostream& out) {
  const auto row = [&out](std::string_view name, const std::string& value) {
    char line[256];
    std::snprintf(line, sizeof line, "%-16.*s %s", static_cast<int>(name.size()), name.data(),
                  value.c_str());
    out << line << '\n';
  };
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.2f", summary.ratio());
  row("store", summary.path);
  row("version", std::to_string(kStoreVersion));
  row("encrypted", summary.encrypted ? "yes" : "no");
  row("health", summary.health);
  if (summary.holder_pid != 0) {
    row("held by", "process " + std::to_string(summary.holder_pid) + "; as of its last flush");
  }
  row("blocks", std::to_string(summary.blocks));
  row("tails", std::to_string(summary.tails));
  row("tokens", std::to_string(summary.tokens));
  row("namespaces", std::to_string(summary.namespaces));
  row("conversations", std::to_string(summary.conversations));
  row("epochs", std::to_string(summary.epochs));
  row("latents", human_bytes(summary.raw_bytes) + " as " + human_bytes(summary.stored_bytes) +
                     ", " + ratio + " times smaller");
  row("on disk", human_bytes(summary.disk_bytes) + " (blocks " + human_bytes(summary.blocks_bytes) +
                     ", conversations " + human_bytes(summary.conversations_bytes) + ")");
  row("unreadable", std::to_string(summary.unreadable_records) + " records");
  row("in quarantine", std::to_string(summary.quarantined) + " records, " +
                           human_bytes(summary.quarantine_bytes));
  out << std::flush;
}

}  // namespace

Result<int> run_stat(const StatOptions& options, std::ostream& out) {
  const std::string path = store_path_of(options.store);
  const Result<StoreSummary> summary = summarise(path, options.encryption);
  if (!summary) {
    if (!options.json) return summary.error();
    const nlohmann::ordered_json json = {
        {"path", path}, {"state", "unusable"}, {"reason", summary.error().message}};
    out << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
    print_error(summary.error().message);
    return kExitFailed;
  }
  if (options.json) {
    print_json(*summary, out);
  } else {
    print_table(*summary, out);
  }
  return kExitOk;
}

}  // namespace ember
