// verify: recomputes every block's hash, decodes every layer group, loads every conversation.
#include "tools/commands/verify.h"

#include <nlohmann/json.hpp>
#include <span>
#include <unordered_set>
#include <utility>

#include "prefix_index/block_hash.h"
#include "tools/commands/engine_flags.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/progress.h"
#include "tools/commands/store_view.h"

namespace ember {
namespace {

// Most damages that are listed one by one; all are counted.
constexpr size_t kMostDetails = 100;

class Verifier {
 public:
  Verifier(const StoreView& view, VerifyReport& report) : view_(view), report_(report) {}

  void run() {
    Result<DiskTier::Listing> blocks = view_.disk->list();
    Result<Conversations::TailListing> tails = view_.conversations->list_tails();
    if (!blocks) damage("block records: " + blocks.error().message);
    if (!tails) damage("tail records: " + tails.error().message);
    if (blocks && blocks->unreadable > 0) unreadable_records(blocks->unreadable, "block");
    if (tails && tails->unreadable > 0) unreadable_records(tails->unreadable, "tail");
    size_t total = 1;
    if (blocks) {
      total += blocks->records.size();
      for (const RecordRow& row : blocks->records) known_.insert(row.first.hash);
    }
    if (tails) total += tails->records.size();
    if (blocks) {
      for (const RecordRow& row : blocks->records) {
        check_block(row.first);
        progress_.show("verifying blocks", share(total));
      }
    }
    if (tails) {
      for (const BlockRecord& record : tails->records) {
        check_block(record);
        progress_.show("verifying blocks", share(total));
      }
    }
    check_conversations();
    report_.quarantined = view_.quarantine->list();
    check_files(view_.disk->verify_files(), "blocks");
    check_files(view_.conversations->verify_files(), "conversations");
  }

 private:
  double share(size_t total) const {
    return static_cast<double>(report_.blocks) / static_cast<double>(total);
  }

  void damage(std::string what) {
    ++report_.damaged;
    if (report_.details.size() < kMostDetails) report_.details.push_back(std::move(what));
  }

  void unreadable_records(uint64_t count, const std::string& kind) {
    damage(std::to_string(count) + " " + kind + " records cannot be read");
    report_.damaged += count - 1;
  }

  void check_block(const BlockRecord& record) {
    ++report_.blocks;
    const std::string name = (record.tail ? "tail " : "block ") + record.hash.hex();
    const BlockHasher hasher(view_.directory->secret(), record.name_space, record.scope);
    bool good = true;
    if (hasher.next(record.parent, record.tokens) != record.hash) {
      good = false;
      damage(name + ": its hash is not that of its parent and tokens");
    } else if (record.parent != hasher.root() && !known_.contains(record.parent)) {
      ++report_.unreachable;
    }
    std::string raw;
    for (uint32_t group = 0; group < record.groups.size(); ++group) {
      ++report_.groups;
      raw.resize(record.groups[group].raw_bytes);
      const Bytes bytes = std::as_writable_bytes(std::span<char>(raw));
      const Status status = record.tail ? view_.conversations->read_tail_group(record, group, bytes)
                                        : view_.disk->read_group(record, group, bytes);
      if (status.ok()) continue;
      if (good) damage(name + " group " + std::to_string(group) + ": " + status.error().message);
      good = false;
    }
  }

  void check_conversations() {
    const Result<std::vector<Conversation>> heads = view_.conversations->list();
    if (!heads) {
      damage("conversations: " + heads.error().message);
      return;
    }
    for (const Conversation& head : *heads) {
      ++report_.conversations;
      const Result<Conversation> whole = view_.conversations->load(head.id);
      if (!whole) damage("conversation " + head.id + ": " + whole.error().message);
    }
  }

  void check_files(const Result<std::vector<std::string>>& files, const std::string& what) {
    if (!files) {
      report_.unreadable_files.push_back(what + ": " + files.error().message);
      return;
    }
    for (const std::string& file : *files) report_.unreadable_files.push_back(file);
  }

  const StoreView& view_;
  VerifyReport& report_;
  Progress progress_;
  std::unordered_set<BlockHash> known_;
};

void print_json(const VerifyReport& report, std::ostream& out) {
  nlohmann::ordered_json json = {{"blocks", report.blocks},
                                 {"groups", report.groups},
                                 {"damaged", report.damaged},
                                 {"unreadable_files", report.unreadable_files.size()},
                                 {"conversations", report.conversations},
                                 {"unreachable", report.unreachable},
                                 {"quarantined", report.quarantined.size()},
                                 {"unreadable_file_names", report.unreadable_files},
                                 {"details", report.details}};
  json["quarantine"] = nlohmann::ordered_json::array();
  for (const QuarantineRow& row : report.quarantined) {
    json["quarantine"].push_back({{"file", row.file},
                                  {"hash", row.hash.hex()},
                                  {"position", row.position},
                                  {"tail", row.tail},
                                  {"bytes", row.bytes},
                                  {"unix_us", row.unix_us},
                                  {"reason", row.reason}});
  }
  if (!report.reason.empty()) json["reason"] = report.reason;
  out << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

void print_text(const VerifyReport& report, std::ostream& out) {
  for (const std::string& line : report.details) out << line << '\n';
  for (const std::string& file : report.unreadable_files) out << "unreadable file " << file << '\n';
  for (const QuarantineRow& row : report.quarantined) {
    out << "in quarantine: " << (row.tail ? "tail " : "block ") << row.hash.hex() << ", "
        << row.bytes << " bytes: " << row.reason << '\n';
  }
  out << report.blocks << " blocks, " << report.groups << " groups, " << report.conversations
      << " conversations, " << report.damaged << " damaged, " << report.unreadable_files.size()
      << " unreadable files, " << report.unreachable << " unreachable, "
      << report.quarantined.size() << " in quarantine" << std::endl;
}

}  // namespace

VerifyReport verify_store(const std::string& path, const EncryptionOptions& encryption) {
  VerifyReport report;
  const Result<StoreView> view = StoreView::open(path, encryption);
  if (!view) {
    report.reason = view.error().message;
    if (view.error().code == ErrorCode::kCorruption) report.unreadable_files.push_back(path);
    return report;
  }
  Verifier(*view, report).run();
  return report;
}

Result<int> run_verify(const VerifyOptions& options, std::ostream& out) {
  const VerifyReport report = verify_store(store_path_of(options.store), options.encryption);
  if (options.json) {
    print_json(report, out);
  } else if (report.reason.empty()) {
    print_text(report, out);
  }
  if (!report.reason.empty()) print_error(report.reason);
  return report.good() ? kExitOk : kExitFailed;
}

}  // namespace ember
