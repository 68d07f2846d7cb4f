// Record: writing and reading of block records, byte by byte as drawn in the header.
#include "store/record.h"

#include <limits>

#include "base/bytes.h"
#include "base/check.h"

namespace ember {
namespace {

constexpr size_t kChecksumBytes = 8;
constexpr uint16_t kFlagTail = 1;
constexpr uint16_t kStreamBodyBytes = 10;
constexpr size_t kGroupBytes = 4 + 4 + 4 + 4 + 1 + 3 + 8;

void append_hash(std::string& out, const BlockHash& hash) { out.append(hash.view()); }

BlockHash read_hash(ByteReader& reader) { return reader.read<BlockHash>(); }

Error damaged(const std::string& what) {
  return {ErrorCode::kCorruption, "block record: " + what};
}

void append_stream(std::string& out, const Stream& stream) {
  append_value(out, stream.kind);
  append_value(out, kStreamBodyBytes);
  append_value(out, stream.lifetime);
  append_value(out, stream.dtype);
  append_value(out, stream.scale_rule);
  append_value(out, uint8_t{0});
  append_value(out, stream.tokens_per_row);
  append_value(out, stream.row_values);
}

void append_group(std::string& out, const GroupEntry& group) {
  append_value(out, group.first_layer);
  append_value(out, group.layers);
  append_value(out, group.raw_bytes);
  append_value(out, group.stored_bytes);
  append_value(out, group.codec);
  out.append(3, '\0');
  append_value(out, group.checksum);
}

bool known_dtype(DType dtype) { return dtype_bytes(dtype) != 0; }

Status read_streams(ByteReader& reader, std::vector<Stream>& streams) {
  auto count = reader.read<uint16_t>();
  for (uint16_t i = 0; i < count && !reader.failed(); ++i) {
    auto kind = reader.read<uint16_t>();
    auto length = reader.read<uint16_t>();
    ByteReader body(reader.read_bytes(length));
    if (kind != static_cast<uint16_t>(StreamKind::kMlaRow)) continue;
    Stream stream;
    stream.lifetime = body.read<StreamLifetime>();
    stream.dtype = body.read<DType>();
    stream.scale_rule = body.read<ScaleRule>();
    body.read<uint8_t>();
    stream.tokens_per_row = body.read<uint16_t>();
    stream.row_values = body.read<uint32_t>();
    if (!body.finished() || !known_dtype(stream.dtype)) {
      return damaged("stream " + std::to_string(i) + " has a body of " + std::to_string(length) +
                     " bytes and dtype " + std::to_string(static_cast<unsigned>(stream.dtype)));
    }
    streams.push_back(stream);
  }
  return {};
}

Status read_groups(ByteReader& reader, std::vector<GroupEntry>& groups) {
  auto count = reader.read<uint16_t>();
  if (count > kMaxGroups || count * kGroupBytes > reader.remaining()) {
    return damaged(std::to_string(count) + " groups in " + std::to_string(reader.remaining()) +
                   " bytes");
  }
  groups.reserve(count);
  for (uint16_t i = 0; i < count; ++i) {
    GroupEntry group;
    group.first_layer = reader.read<uint32_t>();
    group.layers = reader.read<uint32_t>();
    group.raw_bytes = reader.read<uint32_t>();
    group.stored_bytes = reader.read<uint32_t>();
    group.codec = reader.read<CodecId>();
    reader.read_bytes(3);
    group.checksum = reader.read<uint64_t>();
    if (group.raw_bytes > kMaxGroupBytes ||
        group.stored_bytes > group.raw_bytes + kCodecFrameBytes) {
      return damaged("group " + std::to_string(i) + " says " + std::to_string(group.raw_bytes) +
                     " raw and " + std::to_string(group.stored_bytes) + " stored bytes");
    }
    groups.push_back(group);
  }
  return {};
}

Status read_tokens(ByteReader& reader, uint32_t count, std::vector<TokenId>& tokens) {
  if (count == 0 || count > kMaxBlockTokens || count * sizeof(TokenId) != reader.remaining()) {
    return damaged(std::to_string(count) + " tokens in " + std::to_string(reader.remaining()) +
                   " bytes");
  }
  tokens.resize(count);
  for (TokenId& token : tokens) token = reader.read<TokenId>();
  return {};
}

// Magic, checksum, then version: so a changed byte is damage, and only intact bytes are refused as
// another version.
Result<std::string_view> proven_body(std::string_view bytes) {
  if (bytes.size() < 8 + kChecksumBytes) {
    return damaged("only " + std::to_string(bytes.size()) + " bytes");
  }
  std::string_view body = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (load_unaligned<uint32_t>(body.data()) != kRecordMagic) {
    return damaged("begins with " + to_hex(as_bytes(body.substr(0, 4))) + ", expected 454d424b");
  }
  auto stored = load_unaligned<uint64_t>(body.data() + body.size());
  if (checksum64(as_bytes(body)) != stored) return damaged("its checksum does not agree");
  auto version = load_unaligned<uint16_t>(body.data() + 4);
  if (version != kRecordVersion) {
    return Error{ErrorCode::kUnsupported, "block record: format version " +
                                              std::to_string(version) + ", this program reads " +
                                              std::to_string(kRecordVersion)};
  }
  return body.substr(6);
}

}  // namespace

uint64_t BlockRecord::raw_bytes() const {
  uint64_t sum = 0;
  for (const GroupEntry& group : groups) sum += group.raw_bytes;
  return sum;
}

uint64_t BlockRecord::stored_bytes() const {
  uint64_t sum = 0;
  for (const GroupEntry& group : groups) sum += group.stored_bytes;
  return sum;
}

std::string encode_record(const BlockRecord& record) {
  EMBER_CHECK(!record.tokens.empty() && record.tokens.size() <= kMaxBlockTokens,
              "a block record holds 1 to kMaxBlockTokens tokens");
  EMBER_CHECK(record.groups.size() <= kMaxGroups, "a block record holds at most kMaxGroups groups");
  EMBER_CHECK(record.scope.size() <= std::numeric_limits<uint16_t>::max(), "a scope is a name");
  std::string out;
  append_value(out, kRecordMagic);
  append_value(out, kRecordVersion);
  append_value(out, static_cast<uint16_t>(record.tail ? kFlagTail : 0));
  append_hash(out, record.name_space);
  append_hash(out, record.hash);
  append_hash(out, record.parent);
  append_value(out, record.numerics_build);
  append_value(out, record.position);
  append_value(out, static_cast<uint32_t>(record.tokens.size()));
  append_value(out, record.epoch);
  append_value(out, static_cast<uint16_t>(record.scope.size()));
  out.append(record.scope);
  append_value(out, static_cast<uint16_t>(record.publisher.size()));
  out.append(record.publisher);
  append_value(out, static_cast<uint16_t>(record.streams.size()));
  for (const Stream& stream : record.streams) append_stream(out, stream);
  append_value(out, static_cast<uint16_t>(record.groups.size()));
  for (const GroupEntry& group : record.groups) append_group(out, group);
  for (TokenId token : record.tokens) append_value(out, token);
  append_value(out, checksum64(as_bytes(out)));
  return out;
}

Result<BlockRecord> decode_record(std::string_view bytes) {
  EMBER_ASSIGN(std::string_view body, proven_body(bytes));
  ByteReader reader(body);
  BlockRecord record;
  record.tail = (reader.read<uint16_t>() & kFlagTail) != 0;
  record.name_space = read_hash(reader);
  record.hash = read_hash(reader);
  record.parent = read_hash(reader);
  record.numerics_build = reader.read<uint64_t>();
  record.position = reader.read<uint32_t>();
  auto token_count = reader.read<uint32_t>();
  record.epoch = reader.read<uint32_t>();
  record.scope = std::string(reader.read_bytes(reader.read<uint16_t>()));
  record.publisher = std::string(reader.read_bytes(reader.read<uint16_t>()));
  EMBER_TRY(read_streams(reader, record.streams));
  EMBER_TRY(read_groups(reader, record.groups));
  EMBER_TRY(read_tokens(reader, token_count, record.tokens));
  if (!reader.finished()) return damaged("it ends too early");
  return record;
}

}  // namespace ember
