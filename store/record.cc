// Record: writing and reading of block records, byte by byte as drawn in the header.
#include "store/record.h"

#include <cstring>
#include <limits>

#include "base/bytes.h"
#include "base/check.h"

namespace ember {
namespace {

Error damaged(const std::string& what) {
  return {ErrorCode::kCorruption, "block record: " + what};
}

void append_stream(std::string& out, const Stream& stream) {
  append_value(out, StreamHead{static_cast<uint16_t>(stream.kind), sizeof(StreamBody)});
  append_value(out, StreamBody{.row_values = stream.row_values,
                               .tokens_per_row = stream.tokens_per_row,
                               .lifetime = stream.lifetime,
                               .dtype = stream.dtype,
                               .scale_rule = stream.scale_rule});
}

void append_group(std::string& out, const GroupEntry& group) {
  append_value(out, GroupRow{.checksum = group.checksum,
                             .first_layer = group.first_layer,
                             .layers = group.layers,
                             .raw_bytes = group.raw_bytes,
                             .stored_bytes = group.stored_bytes,
                             .codec = group.codec});
}

bool known_dtype(DType dtype) { return dtype_bytes(dtype) != 0; }

Status read_streams(ByteReader& reader, uint16_t count, std::vector<Stream>& streams) {
  for (uint16_t i = 0; i < count && !reader.failed(); ++i) {
    const auto head = reader.read<StreamHead>();
    ByteReader bytes(reader.read_bytes(head.body_bytes));
    const auto kind = static_cast<StreamKind>(head.kind);
    if (kind != StreamKind::kMlaRow && kind != StreamKind::kMlaFp8Row) continue;
    const auto body = bytes.read<StreamBody>();
    if (!bytes.finished() || !known_dtype(body.dtype)) {
      return damaged("stream " + std::to_string(i) + " has a body of " +
                     std::to_string(head.body_bytes) + " bytes and dtype " +
                     std::to_string(static_cast<unsigned>(body.dtype)));
    }
    streams.push_back({.kind = kind,
                       .lifetime = body.lifetime,
                       .dtype = body.dtype,
                       .scale_rule = body.scale_rule,
                       .tokens_per_row = body.tokens_per_row,
                       .row_values = body.row_values});
  }
  return {};
}

Status read_groups(ByteReader& reader, uint16_t count, std::vector<GroupEntry>& groups) {
  if (count > kMaxGroups || count * sizeof(GroupRow) > reader.remaining()) {
    return damaged(std::to_string(count) + " groups in " + std::to_string(reader.remaining()) +
                   " bytes");
  }
  groups.reserve(count);
  for (uint16_t i = 0; i < count; ++i) {
    const auto row = reader.read<GroupRow>();
    if (row.raw_bytes > kMaxGroupBytes || row.stored_bytes > row.raw_bytes + kCodecFrameBytes) {
      return damaged("group " + std::to_string(i) + " says " + std::to_string(row.raw_bytes) +
                     " raw and " + std::to_string(row.stored_bytes) + " stored bytes");
    }
    groups.push_back({.first_layer = row.first_layer,
                      .layers = row.layers,
                      .raw_bytes = row.raw_bytes,
                      .stored_bytes = row.stored_bytes,
                      .codec = row.codec,
                      .checksum = row.checksum});
  }
  return {};
}

Status read_tokens(ByteReader& reader, uint32_t count, std::vector<TokenId>& tokens) {
  if (count == 0 || count > kMaxBlockTokens || count * sizeof(TokenId) != reader.remaining()) {
    return damaged(std::to_string(count) + " tokens in " + std::to_string(reader.remaining()) +
                   " bytes");
  }
  tokens.resize(count);
  std::memcpy(tokens.data(), reader.read_bytes(count * sizeof(TokenId)).data(),
              count * sizeof(TokenId));
  return {};
}

// Magic, checksum, then version: so a changed byte is damage, and only intact bytes are refused as
// another version.
Result<std::string_view> proven_body(std::string_view bytes) {
  if (bytes.size() < 8 + kRecordChecksumBytes) {
    return damaged("only " + std::to_string(bytes.size()) + " bytes");
  }
  std::string_view body = bytes.substr(0, bytes.size() - kRecordChecksumBytes);
  if (load_unaligned<uint32_t>(body.data()) != kRecordMagic) {
    return damaged("begins with " + to_hex(as_bytes(body.substr(0, 4))) + ", expected 454d424b");
  }
  auto stored = load_unaligned<uint64_t>(body.data() + body.size());
  if (checksum64(as_bytes(body)) != stored) return damaged("its checksum does not agree");
  auto version = load_unaligned<uint16_t>(body.data() + offsetof(RecordHead, version));
  if (version != kRecordVersion) {
    return Error{ErrorCode::kUnsupported, "block record: format version " +
                                              std::to_string(version) + ", this program reads " +
                                              std::to_string(kRecordVersion)};
  }
  return body;
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
  constexpr size_t kMostNameBytes = std::numeric_limits<uint16_t>::max();
  EMBER_CHECK(!record.tokens.empty() && record.tokens.size() <= kMaxBlockTokens,
              "a block record holds 1 to kMaxBlockTokens tokens");
  EMBER_CHECK(record.groups.size() <= kMaxGroups, "a block record holds at most kMaxGroups groups");
  EMBER_CHECK(record.scope.size() <= kMostNameBytes && record.publisher.size() <= kMostNameBytes,
              "scopes and tenants are names");
  std::string out;
  append_value(out, RecordHead{.flags = record.tail ? kRecordTailFlag : uint16_t{0},
                               .name_space = record.name_space,
                               .hash = record.hash,
                               .parent = record.parent,
                               .numerics_build = record.numerics_build,
                               .position = record.position,
                               .token_count = static_cast<uint32_t>(record.tokens.size()),
                               .epoch = record.epoch,
                               .scope_bytes = static_cast<uint16_t>(record.scope.size()),
                               .publisher_bytes = static_cast<uint16_t>(record.publisher.size()),
                               .stream_count = static_cast<uint16_t>(record.streams.size()),
                               .group_count = static_cast<uint16_t>(record.groups.size())});
  out.append(record.scope);
  out.append(record.publisher);
  for (const Stream& stream : record.streams) append_stream(out, stream);
  for (const GroupEntry& group : record.groups) append_group(out, group);
  for (TokenId token : record.tokens) append_value(out, token);
  append_value(out, checksum64(as_bytes(out)));
  return out;
}

Result<BlockRecord> decode_record(std::string_view bytes) {
  BlockRecord record;
  EMBER_TRY(decode_record(bytes, record));
  return record;
}

Status decode_record(std::string_view bytes, BlockRecord& record) {
  EMBER_ASSIGN(std::string_view body, proven_body(bytes));
  ByteReader reader(body);
  const auto head = reader.read<RecordHead>();
  record.tail = (head.flags & kRecordTailFlag) != 0;
  record.name_space = head.name_space;
  record.hash = head.hash;
  record.parent = head.parent;
  record.numerics_build = head.numerics_build;
  record.position = head.position;
  record.epoch = head.epoch;
  record.scope.assign(reader.read_bytes(head.scope_bytes));
  record.publisher.assign(reader.read_bytes(head.publisher_bytes));
  record.streams.clear();
  record.groups.clear();
  EMBER_TRY(read_streams(reader, head.stream_count, record.streams));
  EMBER_TRY(read_groups(reader, head.group_count, record.groups));
  EMBER_TRY(read_tokens(reader, head.token_count, record.tokens));
  if (!reader.finished()) return damaged("it ends too early");
  return {};
}

}  // namespace ember
