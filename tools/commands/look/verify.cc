// verify: recomputes every block's hash, decodes every layer group, loads every conversation.
#include "tools/commands/look/verify.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/prng.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_proof.h"
#include "tools/commands/messages.h"
#include "tools/commands/progress.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

// Most damages that are listed one by one; all are counted.
constexpr size_t kMostDetails = 100;

class Verifier {
 public:
  Verifier(const VerifyOptions& options, StoreReader& reader, CommandIo& io, VerifyReport& report)
      : options_(options),
        reader_(reader),
        io_(io),
        report_(report),
        progress_(io),
        proof_(reader, io, options.bytes_per_second) {}

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
    for (const uint32_t index : blocks) {
      if (io_.stopped()) return {ErrorCode::kCancelled, "stopped"};
      const BlockNode& node = tree.node(index);
      progress_.show("verifying blocks",
                     static_cast<double>(report_.blocks) / static_cast<double>(blocks.size()));
      const Result<std::optional<BlockRecord>> record = reader_.record(node.hash);
      ++report_.blocks;
      report_.tails += node.tail ? 1 : 0;
      if (!record.ok()) damage("block " + node.hash.hex() + ": " + record.error().message);
      // One that was evicted since then is not there to be wrong.
      if (record.ok() && *record) check_block(**record, node);
    }
    return {};
  }

  void damage(std::string what) {
    ++report_.damaged;
    if (report_.details.size() < kMostDetails) report_.details.push_back(std::move(what));
  }

  void check_block(const BlockRecord& record, const BlockNode& node) {
    const std::string name = (record.tail ? "tail " : "block ") + record.hash.hex();
    const Status proven = proof_.prove(record);
    report_.groups = proof_.groups();
    report_.raw_bytes = proof_.raw_bytes();
    if (!proven.ok() && proven.error().code == ErrorCode::kBusy) {
      ++report_.passed_over;
    } else if (!proven.ok()) {
      damage(name + ": " + proven.error().message);
    }
    if (node.orphan) ++report_.unreachable;
    if (is_hole(record)) ++report_.holes;
  }

  void check_conversations() {
    const Result<std::vector<Conversation>> heads = reader_.conversations().list();
    if (!heads) {
      damage("conversations: " + heads.error().message);
      return;
    }
    const uint64_t unreadable = reader_.conversations().unreadable_heads();
    if (unreadable > 0) damage(counted(unreadable, "conversation") + " cannot be read");
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
  BlockProof proof_;
};

void print_json(const VerifyReport& report, std::ostream& out) {
  nlohmann::ordered_json json = {{"blocks", report.blocks},
                                 {"tails", report.tails},
                                 {"groups", report.groups},
                                 {"raw_bytes", report.raw_bytes},
                                 {"whole", report.whole},
                                 {"damaged", report.damaged},
                                 {"unreadable_files", report.unreadable_files.size()},
                                 {"conversations", report.conversations},
                                 {"unreachable", report.unreachable},
                                 {"holes", report.holes},
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
  out << (report.whole ? "" : "in part: ") << counted(report.blocks - report.tails, "block") << ", "
      << counted(report.tails, "tail") << ", " << counted(report.groups, "group") << ", "
      << counted(report.conversations, "conversation") << ", " << grouped(report.damaged)
      << " damaged, " << counted(report.unreadable_files.size(), "unreadable file") << ", "
      << grouped(report.unreachable) << " unreachable, " << grouped(report.quarantined.size())
      << " in quarantine";
  if (report.holes > 0) {
    out << ", " << counted(report.holes, "hole") << " (computed anew when asked for)";
  }
  if (report.passed_over > 0) {
    out << ", " << grouped(report.passed_over) << " passed over (they changed)";
  }
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
  if (!report.reason.empty()) {
    print_error(io.err, report.reason);
  } else if (!report.good()) {
    print_error(io.err, kRepairIsNext);
  }
  return report.good() ? kExitOk : kExitFailed;
}

}  // namespace ember
