// export: reads, proves, codes and writes what the plan has chosen.
#include "tools/commands/transfer/export.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "store/codec.h"
#include "store/transfer/transfer_writer.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/messages.h"
#include "tools/commands/output_file.h"
#include "tools/commands/progress.h"
#include "tools/commands/text_form.h"
#include "tools/commands/transfer/export_plan.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

Result<std::string> file_bytes(const std::string& path, uint64_t expected) {
  std::string bytes(expected + 1, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto got = static_cast<uint64_t>(file.gcount());
  if (file.bad() || got != expected) {
    return Error{ErrorCode::kIo, path + ": cannot be read, or has changed meanwhile"};
  }
  bytes.resize(got);
  return bytes;
}

class Exporter {
 public:
  Exporter(const ExportPlan& plan, StoreReader& reader, const BlockTree& tree, CommandIo& io)
      : plan_(plan),
        reader_(reader),
        tree_(tree),
        io_(io),
        progress_(io),
        numbers_(tree.nodes().size()) {
    report_.damaged = plan.damage.size();
    report_.unreachable = plan.unreachable;
    report_.left_out = plan.left_out;
    report_.name_spaces = plan.manifest.name_spaces.size();
  }

  Result<ExportReport> run(OutputFile& output) {
    EMBER_ASSIGN(writer_, TransferWriter::begin(
                              [&output](std::string_view bytes) { return output.write(bytes); },
                              plan_.manifest));
    EMBER_TRY(write_tokenizers());
    std::optional<Error> failure;
    tree_.descend(kNoNode, [&](uint32_t index, uint32_t) {
      if (failure || !plan_.chosen[index]) return false;
      const Result<bool> came = write_block(index);
      if (!came.ok()) failure = came.error();
      return came.ok() && *came;
    });
    if (failure) return *failure;
    EMBER_TRY(write_conversations());
    const TransferCounts& counts = writer_->counts();
    const TransferCounts& planned = plan_.manifest.planned;
    report_.left_out += planned.blocks + planned.tails + planned.conversations -
                        (counts.blocks + counts.tails + counts.conversations);
    EMBER_TRY(writer_->end(report_.left_out));
    EMBER_TRY(output.finish());
    report_.blocks = counts.blocks;
    report_.tails = counts.tails;
    report_.conversations = counts.conversations;
    report_.bytes = writer_->bytes();
    return report_;
  }

 private:
  Status write_tokenizers() {
    for (size_t i = 0; i < plan_.manifest.tokenizers.size(); ++i) {
      const TransferTokenizer& one = plan_.manifest.tokenizers[i];
      for (const TransferFile& file : one.files) {
        EMBER_ASSIGN(const std::string bytes,
                     file_bytes(plan_.tokenizer_folders[i] + "/" + file.name, file.bytes));
        EMBER_TRY(writer_->add_tokenizer_file(one.digest, file.name, bytes));
      }
    }
    return {};
  }

  // False: it is left out, and what hangs below it with it.
  Result<bool> write_block(uint32_t index) {
    if (io_.stopped()) return Error{ErrorCode::kCancelled, "stopped"};
    const TransferCounts& done = writer_->counts();
    const TransferCounts& planned = plan_.manifest.planned;
    progress_.show("exporting", static_cast<double>(done.blocks + done.tails) /
                                    static_cast<double>(planned.blocks + planned.tails + 1));
    const BlockNode& node = tree_.node(index);
    Result<std::optional<BlockRecord>> found = reader_.record(node.hash);
    if (!found.ok()) return damage(node, found.error().message);
    if (!*found) return pass_over();
    BlockRecord& record = **found;
    const BlockHasher hasher(reader_.secret(), record.name_space, record.scope);
    const bool first = node.parent == kNoNode;
    if (hasher.next(record.parent, record.tokens) != record.hash ||
        (first && record.parent != hasher.root())) {
      return damage(node, "its hash is not that of its parent and tokens");
    }
    if (node.damaged) return damage(node, "its bytes were proven wrong before");
    if (record.streams.size() != 1) return damage(node, "its layout is not known");
    std::vector<std::string> payloads;
    for (uint32_t group = 0; group < record.groups.size(); ++group) {
      raw_.resize(record.groups[group].raw_bytes);
      const Bytes raw = std::as_writable_bytes(std::span<char>(raw_));
      const Status read = reader_.read_group(record, group, raw);
      if (!read.ok() && (read.error().code == ErrorCode::kBusy || has_changed(record))) {
        return pass_over();
      }
      if (!read.ok()) return damage(node, read.error().message);
      payloads.push_back(code(record, group));
    }
    const uint64_t parent = first ? 0 : numbers_[node.parent];
    const Result<uint64_t> number = writer_->add_block(std::move(record), payloads, parent);
    if (!number.ok() && number.error().code == ErrorCode::kCorruption) {
      return damage(node, number.error().message);
    }
    EMBER_TRY(number);
    numbers_[index] = *number;
    return true;
  }

  // Anew, so that a file depends on no store: where the bytes lay, or that they lay in RAM alone.
  std::string code(BlockRecord& record, uint32_t group) {
    const GroupShape shape{record.streams[0].dtype, record.streams[0].row_values,
                           static_cast<uint32_t>(record.tokens.size())};
    EncodedGroup coded = encode_group(shape, as_bytes(raw_));
    GroupEntry& entry = record.groups[group];
    entry.codec = coded.codec;
    entry.stored_bytes = static_cast<uint32_t>(coded.payload.size());
    entry.checksum = checksum64(as_bytes(raw_));
    return std::move(coded.payload);
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

  bool pass_over() {
    ++report_.passed_over;
    return false;
  }

  bool damage(const BlockNode& node, const std::string& what) {
    progress_.clear();
    ++report_.damaged;
    print_error(io_.err, (node.tail ? "tail " : "block ") + node.hash.hex() + ": " + what +
                             "; left out, with what hangs below");
    return false;
  }

  Status write_conversations() {
    for (const Conversation& head : plan_.conversations) {
      if (io_.stopped()) return {ErrorCode::kCancelled, "stopped"};
      const Result<Conversation> whole = reader_.conversations().load(head.id);
      const Status added = whole.ok() ? writer_->add_conversation(*whole) : whole.error();
      if (added.ok()) continue;
      if (whole.ok() && added.error().code != ErrorCode::kCorruption) return added;
      ++report_.damaged;
      print_error(io_.err, "conversation " + head.id + ": " + added.error().message);
    }
    return {};
  }

  const ExportPlan& plan_;
  StoreReader& reader_;
  const BlockTree& tree_;
  CommandIo& io_;
  Progress progress_;
  std::vector<uint64_t> numbers_;  // in the file, by node; 0: not in it
  std::unique_ptr<TransferWriter> writer_;
  std::string raw_;  // of one group
  ExportReport report_;
};

void print_report(const ExportReport& report, const ExportOptions& options, CommandIo& io) {
  // Standard output is the file itself, where it is asked for.
  std::ostream& out = options.output == "-" ? io.err : io.out;
  if (options.json) {
    out << Json({{"output", options.output},
                 {"blocks", report.blocks},
                 {"tails", report.tails},
                 {"conversations", report.conversations},
                 {"namespaces", report.name_spaces},
                 {"bytes", report.bytes},
                 {"damaged", report.damaged},
                 {"left_out", report.left_out},
                 {"unreachable", report.unreachable},
                 {"passed_over", report.passed_over}})
               .dump(-1, ' ', false, Json::error_handler_t::replace)
        << std::endl;
    return;
  }
  out << "exported " << counted(report.blocks, "block") << ", " << counted(report.tails, "tail")
      << " and " << counted(report.conversations, "conversation") << " of "
      << counted(report.name_spaces, "namespace") << ": " << human_bytes(report.bytes);
  if (report.left_out > 0) out << "; " << grouped(report.left_out) << " left out";
  if (report.damaged > 0) out << ", " << grouped(report.damaged) << " damaged";
  if (report.unreachable > 0) {
    out << "; " << counted(report.unreachable, "unreachable block") << " not in it";
  }
  out << std::endl;
}

}  // namespace

Result<int> run_export(const ExportOptions& options, CommandContext& context) {
  CommandIo& io = context.io;
  EMBER_TRY(check_filter(options.filter));
  // What a running process has in memory comes down first, as far as the disk takes it.
  if (const Result<LiveCache> live = context.open_live(options.store); live.ok()) {
    static_cast<void>(live->wait_for([&live] { return live->cache->sync(); }));
  }
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
  if (reader->facts().encrypted && !options.clear) {
    return Error{ErrorCode::kInvalidArgument,
                 "the store is encrypted, and an export is not: --clear writes it all the same"};
  }
  EMBER_ASSIGN(const std::unique_ptr<OutputFile> output, OutputFile::open(options.output, io));
  EMBER_ASSIGN(const BlockTree tree, read_tree(*reader, io));
  EMBER_ASSIGN(const ExportPlan plan, plan_export(options, *reader, tree));
  for (const std::string& line : plan.damage) print_error(io.err, line);
  EMBER_ASSIGN(const ExportReport report, Exporter(plan, *reader, tree, io).run(*output));
  print_report(report, options, io);
  return report.damaged == 0 ? kExitOk : kExitFailed;
}

}  // namespace ember
