// verify: recomputes every block's hash, decodes every layer group, loads every conversation.
#include "tools/commands/verify.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/prng.h"
#include "prefix_index/block_hash.h"
#include "tools/commands/engine_flags.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/progress.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

// Most damages that are listed one by one; all are counted.
constexpr size_t kMostDetails = 100;
constexpr int64_t kPaceSliceUs = 100'000;

class Verifier {
 public:
  Verifier(const VerifyOptions& options, StoreReader& reader, CommandIo& io, VerifyReport& report)
      : options_(options), reader_(reader), io_(io), report_(report), progress_(io) {}

  Status run() {
    const Result<BlockTree> tree = read_tree(reader_, io_);
    if (!tree.ok() && tree.error().code == ErrorCode::kCancelled) return tree.error();
    if (!tree.ok()) damage("block records: " + tree.error().message);
    if (tree.ok()) EMBER_TRY(check_blocks(*tree));
    if (!report_.whole) return {};
    check_conversations();
    report_.quarantined = reader_.quarantined();
    progress_.show("verifying files", 1);
    if (io_.stopped()) return {ErrorCode::kCancelled, "stopped"};
    check_files(reader_.verify_files());
    return {};
  }

 private:
  // Of what was asked for, in the order of their chains; a sample stays in that order.
  Result<std::vector<uint32_t>> chosen(const BlockTree& tree) {
    EMBER_ASSIGN(const uint32_t start, start_of(tree, options_.prefix));
    std::vector<uint32_t> all;
    tree.descend(start, [&all](uint32_t index, uint32_t) {
      all.push_back(index);
      return true;
    });
    report_.whole = start == kNoNode && (options_.sample == 0 || options_.sample >= all.size());
    if (options_.sample == 0 || options_.sample >= all.size()) return all;
    const int64_t now_us = system_clock().unix_us();
    Prng prng(options_.seed != 0 ? options_.seed : static_cast<uint64_t>(now_us));
    std::vector<uint32_t> sample;
    std::sample(all.begin(), all.end(), std::back_inserter(sample), options_.sample, prng);
    return sample;
  }

  Status check_blocks(const BlockTree& tree) {
    const uint64_t unreadable = tree.walked().unreadable;
    if (unreadable > 0) {
      damage(std::to_string(unreadable) + " records cannot be read");
      report_.damaged += unreadable - 1;
    }
    EMBER_ASSIGN(const std::vector<uint32_t> blocks, chosen(tree));
    const int64_t began_us = system_clock().now_us();
    for (const uint32_t index : blocks) {
      if (io_.stopped()) return {ErrorCode::kCancelled, "stopped"};
      const BlockNode& node = tree.node(index);
      progress_.show("verifying blocks",
                     static_cast<double>(report_.blocks) / static_cast<double>(blocks.size()));
      const Result<std::optional<BlockRecord>> record = reader_.record(node.hash);
      ++report_.blocks;
      if (!record.ok()) damage("block " + node.hash.hex() + ": " + record.error().message);
      // One that was evicted since then is not there to be wrong.
      if (record.ok() && *record) check_block(**record, node);
      keep_pace(began_us);
    }
    return {};
  }

  void keep_pace(int64_t began_us) const {
    if (options_.bytes_per_second == 0) return;
    const double due_us = static_cast<double>(report_.raw_bytes) * 1e6 /
                          static_cast<double>(options_.bytes_per_second);
    const int64_t ahead_us = static_cast<int64_t>(due_us) - (system_clock().now_us() - began_us);
    const int64_t until_us = system_clock().now_us() + ahead_us;
    while (!io_.stopped() && system_clock().now_us() < until_us) {
      const int64_t left_us = until_us - system_clock().now_us();
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(left_us, kPaceSliceUs)));
    }
  }

  void damage(std::string what) {
    ++report_.damaged;
    if (report_.details.size() < kMostDetails) report_.details.push_back(std::move(what));
  }

  void check_block(const BlockRecord& record, const BlockNode& node) {
    const std::string name = (record.tail ? "tail " : "block ") + record.hash.hex();
    const BlockHasher hasher(reader_.secret(), record.name_space, record.scope);
    bool good = true;
    if (hasher.next(record.parent, record.tokens) != record.hash) {
      good = false;
      damage(name + ": its hash is not that of its parent and tokens");
    } else if (record.parent != hasher.root() && node.orphan) {
      ++report_.unreachable;
    }
    std::string raw;
    for (uint32_t group = 0; group < record.groups.size(); ++group) {
      ++report_.groups;
      raw.resize(record.groups[group].raw_bytes);
      report_.raw_bytes += raw.size();
      const Status status =
          reader_.read_group(record, group, std::as_writable_bytes(std::span<char>(raw)));
      if (status.ok()) continue;
      if (status.error().code == ErrorCode::kBusy || has_changed(record)) {
        ++report_.passed_over;
        return;
      }
      if (good) damage(name + " group " + std::to_string(group) + ": " + status.error().message);
      good = false;
    }
  }

  // Beside a running process a block may go, or be put elsewhere, while it is read.
  bool has_changed(const BlockRecord& record) {
    if (record.tail) {
      const auto found = reader_.conversations().read_tail_as_found(record.hash);
      return found.ok() && !*found;
    }
    const Result<std::optional<BlockRecord>> now = reader_.record(record.hash);
    return now.ok() && (!*now || (*now)->epoch != record.epoch);
  }

  void check_conversations() {
    const Result<std::vector<Conversation>> heads = reader_.conversations().list();
    if (!heads) {
      damage("conversations: " + heads.error().message);
      return;
    }
    for (const Conversation& head : *heads) {
      if (io_.stopped()) return;
      ++report_.conversations;
      const Result<Conversation> whole = reader_.conversations().load(head.id);
      if (!whole) damage("conversation " + head.id + ": " + whole.error().message);
    }
  }

  void check_files(const Result<std::vector<std::string>>& files) {
    if (!files) {
      report_.unreadable_files.push_back(files.error().message);
      return;
    }
    for (const std::string& file : *files) report_.unreadable_files.push_back(file);
  }

  const VerifyOptions& options_;
  StoreReader& reader_;
  CommandIo& io_;
  VerifyReport& report_;
  Progress progress_;
};

void print_json(const VerifyReport& report, std::ostream& out) {
  nlohmann::ordered_json json = {{"blocks", report.blocks},
                                 {"groups", report.groups},
                                 {"raw_bytes", report.raw_bytes},
                                 {"whole", report.whole},
                                 {"damaged", report.damaged},
                                 {"unreadable_files", report.unreadable_files.size()},
                                 {"conversations", report.conversations},
                                 {"unreachable", report.unreachable},
                                 {"passed_over", report.passed_over},
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
  for (const std::string& line : report.details) out << one_line(line, 1000) << '\n';
  for (const std::string& file : report.unreadable_files) out << "unreadable file " << file << '\n';
  for (const QuarantineRow& row : report.quarantined) {
    out << "in quarantine: " << (row.tail ? "tail " : "block ") << row.hash.hex() << ", "
        << row.bytes << " bytes: " << one_line(row.reason, 1000) << '\n';
  }
  out << (report.whole ? "" : "in part: ") << report.blocks << " blocks, " << report.groups
      << " groups, " << report.conversations << " conversations, " << report.damaged << " damaged, "
      << report.unreadable_files.size() << " unreadable files, " << report.unreachable
      << " unreachable, " << report.quarantined.size() << " in quarantine";
  if (report.passed_over > 0) out << ", " << report.passed_over << " passed over (they changed)";
  out << std::endl;
}

}  // namespace

Result<int> run_verify(const VerifyOptions& options, CommandContext& context) {
  CommandIo& io = context.io;
  BlockFilter digits;
  digits.prefix = options.prefix;
  EMBER_TRY(check_filter(digits));
  VerifyReport report;
  const Result<std::shared_ptr<StoreReader>> reader = context.open_reader(options.store);
  if (reader.ok()) {
    EMBER_TRY(Verifier(options, **reader, io, report).run());
  } else {
    report.reason = reader.error().message;
    const bool damaged = reader.error().code == ErrorCode::kCorruption;
    if (damaged) report.unreadable_files.push_back(options.store.resolved());
  }
  if (options.json) {
    print_json(report, io.out);
  } else if (report.reason.empty()) {
    print_text(report, io.out);
  }
  if (!report.reason.empty()) print_error(io.err, report.reason);
  return report.good() ? kExitOk : kExitFailed;
}

}  // namespace ember
