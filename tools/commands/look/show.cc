// show: reads one block whole, proves it, and describes it.
#include "tools/commands/look/show.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_filter.h"
#include "tools/commands/look/block_lines.h"
#include "tools/commands/look/prefix_text.h"
#include "tools/commands/look/value_summary.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

struct GroupSight {
  GroupEntry entry;
  std::string damage;  // empty: its bytes are what was written
};

struct Sight {
  BlockNode node;
  BlockRecord record;
  NamespaceNote note;
  std::vector<GroupSight> groups;
  std::optional<std::string> text;
  ValueSummary values;
  uint64_t children = 0;
  bool hash_right = false;
  bool good() const {
    return hash_right && std::all_of(groups.begin(), groups.end(),
                                     [](const GroupSight& group) { return group.damage.empty(); });
  }
};

const char* kind_name(StreamKind kind) {
  return kind == StreamKind::kMlaFp8Row ? "mla_fp8_row" : "mla_row";
}
std::string checksum_text(const GroupEntry& entry) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(entry.checksum));
  return text;
}
const char* codec_name(CodecId codec) {
  return codec == CodecId::kStored ? "stored" : "channel_planes";
}

Result<Sight> look(const ShowOptions& options, StoreReader& reader, CommandIo& io) {
  EMBER_ASSIGN(const BlockTree tree, read_tree(reader, io));
  EMBER_ASSIGN(const uint32_t index, start_of(tree, options.hash));
  Sight sight;
  sight.node = tree.node(index);
  for (uint32_t child = sight.node.first_child; child != kNoNode;
       child = tree.node(child).next_sibling) {
    ++sight.children;
  }
  EMBER_ASSIGN(std::optional<BlockRecord> record, reader.record(sight.node.hash));
  if (!record) {
    return Error{ErrorCode::kInvalidArgument, options.hash + ": is no longer in the store"};
  }
  sight.record = std::move(*record);
  EMBER_ASSIGN(sight.note, reader.name_space(sight.record.name_space));
  PrefixText text(reader);
  sight.text = text.of(sight.record.name_space, sight.record.tokens);
  const BlockHasher hasher(reader.secret(), sight.record.name_space, sight.record.scope);
  // A private chain may hang under a shared one, so its parent is known, not its scope.
  sight.hash_right = hasher.next(sight.record.parent, sight.record.tokens) == sight.record.hash;
  const bool plain = sight.record.streams.size() == 1;
  std::string raw;
  for (uint32_t i = 0; i < sight.record.groups.size(); ++i) {
    raw.assign(sight.record.groups[i].raw_bytes, '\0');
    const Bytes bytes = std::as_writable_bytes(std::span<char>(raw));
    const Status status = reader.read_group(sight.record, i, bytes);
    if (!status.ok() && status.error().code == ErrorCode::kBusy) return status.error();
    sight.groups.push_back({sight.record.groups[i], status.ok() ? "" : status.error().message});
    if (status.ok() && plain) sight.values.add(bytes, sight.record.streams[0].dtype);
  }
  return sight;
}

Json values_json(const ValueSummary& values) {
  Json json = {{"count", values.count()},
               {"nan", values.nan()},
               {"infinite", values.infinite()},
               {"zeros", values.zeros()},
               {"subnormal", values.subnormal()},
               {"least", values.least()},
               {"most", values.most()},
               {"mean", values.mean()},
               {"root_mean_square", values.root_mean_square()},
               {"exponent_entropy_bits", values.exponent_entropy()},
               {"mantissa_entropy_bits", values.mantissa_entropy()},
               {"histogram_first_power", ValueSummary::kFirstPower}};
  json["histogram"] = values.bins();
  return json;
}

void print_json(const Sight& sight, std::ostream& out) {
  const BlockRecord& record = sight.record;
  Json json = {{"hash", record.hash.hex()},
               {"parent", record.parent.hex()},
               {"namespace", record.name_space.hex()},
               {"model", sight.note.model},
               {"scope", record.scope},
               {"publisher", record.publisher},
               {"kind", record.tail ? "tail" : "block"},
               {"position", record.position},
               {"epoch", record.epoch},
               {"numerics_build", record.numerics_build},
               {"children", sight.children},
               {"hits", sight.node.hits},
               {"last_use_unix_us", sight.node.last_use_unix_us},
               {"tiers", tiers_text(sight.node.tiers)},
               {"durable", sight.node.durable},
               {"raw_bytes", record.raw_bytes()},
               {"stored_bytes", record.stored_bytes()},
               {"hash_right", sight.hash_right},
               {"good", sight.good()},
               {"tokens", record.tokens}};
  if (sight.text) json["text"] = valid_utf8(*sight.text);
  for (const Stream& stream : record.streams) {
    json["streams"].push_back({{"kind", kind_name(stream.kind)},
                               {"dtype", dtype_name(stream.dtype)},
                               {"row_values", stream.row_values},
                               {"tokens_per_row", stream.tokens_per_row}});
  }
  for (const GroupSight& group : sight.groups) {
    json["groups"].push_back({{"first_layer", group.entry.first_layer},
                              {"layers", group.entry.layers},
                              {"raw_bytes", group.entry.raw_bytes},
                              {"stored_bytes", group.entry.stored_bytes},
                              {"codec", codec_name(group.entry.codec)},
                              {"checksum", checksum_text(group.entry)},
                              {"damage", group.damage}});
  }
  if (sight.values.count() > 0) json["values"] = values_json(sight.values);
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

void print_values(const ValueSummary& values, CommandIo& io) {
  char line[320];
  std::snprintf(line, sizeof line,
                "values           %s: %.4g to %.4g, mean %.4g, root mean square %.4g\n"
                "                 %s NaN, %s infinite, %s zero\n"
                "entropy          exponent %.2f bits, sign and mantissa %.2f bits a value\n",
                grouped(values.count()).c_str(), values.least(), values.most(), values.mean(),
                values.root_mean_square(), grouped(values.nan()).c_str(),
                grouped(values.infinite()).c_str(), grouped(values.zeros()).c_str(),
                values.exponent_entropy(), values.mantissa_entropy());
  io.out << line;
  const auto& bins = values.bins();
  const uint64_t most = *std::max_element(bins.begin(), bins.end());
  const size_t widest = io.width > 60 ? 40 : 20;
  for (size_t i = 0; i < bins.size(); ++i) {
    if (bins[i] == 0) continue;
    const auto bar = static_cast<size_t>(static_cast<double>(bins[i]) / static_cast<double>(most) *
                                         static_cast<double>(widest));
    std::snprintf(line, sizeof line, "  2^%-4d %12s  ",
                  ValueSummary::kFirstPower + static_cast<int>(i), grouped(bins[i]).c_str());
    io.out << line << std::string(std::max<size_t>(bar, 1), '#') << '\n';
  }
}

void print_text(const Sight& sight, CommandIo& io) {
  const BlockRecord& record = sight.record;
  const auto row = [&io](const std::string& name, const std::string& value) {
    io.out << name << std::string(17 - name.size(), ' ') << value << '\n';
  };
  row(record.tail ? "tail" : "block", record.hash.hex());
  row("parent", record.parent.hex() + (sight.node.orphan ? " (not there)" : ""));
  row("children", grouped(sight.children));
  row("namespace",
      record.name_space.hex() +
          (sight.note.model.empty() ? "" : " (" + one_line(sight.note.model, 64) + ")"));
  row("scope",
      one_line(record.scope + (record.publisher.empty() ? "" : ", of " + record.publisher), 200));
  row("position",
      std::to_string(record.position) + ", " + counted(record.tokens.size(), "token"));
  row("tiers", tiers_text(sight.node.tiers) + (sight.node.durable ? "" : ", not yet durable"));
  row("epoch", std::to_string(record.epoch));
  const std::string age = age_text(sight.node.last_use_unix_us, system_clock().unix_us());
  row("used", counted(sight.node.hits, "hit") +
                  (sight.node.last_use_unix_us > 0 ? ", last " + age + " ago" : ""));
  row("bytes", human_bytes(record.raw_bytes()) + " as " + human_bytes(record.stored_bytes()));
  row("hash", sight.hash_right ? "is that of its parent and tokens" : "WRONG for its tokens");
  for (const Stream& stream : record.streams) {
    row("stream", std::string(kind_name(stream.kind)) + ", " + std::to_string(stream.row_values) +
                      " values of " + std::string(dtype_name(stream.dtype)) + " a token and layer");
  }
  TextTable groups({{"layers"}, {"raw", true}, {"stored", true}, {"codec"}, {"checksum"}, {""}});
  for (const GroupSight& group : sight.groups) {
    const bool stored = group.entry.stored_bytes > 0;  // else it is in RAM alone
    const std::string proof = stored ? "proven" : "not stored yet";
    groups.add({std::to_string(group.entry.first_layer) + " to " +
                    std::to_string(group.entry.first_layer + group.entry.layers - 1),
                human_bytes(group.entry.raw_bytes), human_bytes(group.entry.stored_bytes),
                stored ? codec_name(group.entry.codec) : "-",
                stored ? checksum_text(group.entry) : "-",
                group.damage.empty() ? proof : "DAMAGED: " + group.damage});
  }
  io.out << '\n' << groups.text(io.width, io.colour) << '\n';
  if (sight.values.count() > 0) print_values(sight.values, io);
  io.out << "\ntokens          ";
  size_t column = 16;
  for (const TokenId token : record.tokens) {
    const std::string word = ' ' + std::to_string(token);
    if (column + word.size() > io.width) {
      io.out << "\n                ";
      column = 16;
    }
    io.out << word;
    column += word.size();
  }
  io.out << '\n';
  if (sight.text) io.out << "text             " << one_line(*sight.text, 4096) << '\n';
}

}  // namespace

Result<int> run_show(const ShowOptions& options, CommandContext& context) {
  BlockFilter digits;
  digits.prefix = options.hash;
  if (options.hash.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the hash is empty, expected its first digits"};
  }
  EMBER_TRY(check_filter(digits));
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
  EMBER_ASSIGN(const Sight sight, look(options, *reader, context.io));
  if (options.json) {
    print_json(sight, context.io.out);
  } else {
    print_text(sight, context.io);
    context.io.out << std::flush;
  }
  return sight.good() ? kExitOk : kExitFailed;
}

}  // namespace ember
