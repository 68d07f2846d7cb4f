// Record: the bytes of a block's metadata in the store, drawn once.
//
// Journey    offload -> [record] -> disk_tier; reopening and restore read it back
// Invariant  integers are little-endian; every length is bounded before it is trusted; the last
//            8 bytes are the XXH3-64 of all bytes before them
// Threads    any; pure
// Not here   where records live (store/disk_tier.h), how a group's bytes are coded (store/codec.h)
//
//   block record                bytes
//     head                       88   RecordHead
//     scope                       s   a name
//     publisher                   p   a name
//     streams                         for each: StreamHead 4, then its body: StreamBody 12 where we
//                                     know the kind, anything of the length named where we do not
//     groups                   32 g   GroupRow each
//     token ids                 4 n
//     checksum                    8   XXH3-64 of all bytes before it
//
// The structs below are the bytes: no compiler may pad them. docs/formats.md shows all formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "prefix_index/token.h"
#include "store/codec.h"
#include "store/kv_layout.h"

namespace ember {

inline constexpr uint32_t kRecordMagic = 0x4b424d45;  // "EMBK"
inline constexpr uint16_t kRecordVersion = 1;
inline constexpr uint16_t kRecordTailFlag = 1;
inline constexpr size_t kRecordChecksumBytes = 8;
inline constexpr uint32_t kMaxBlockTokens = 4096;
inline constexpr uint32_t kMaxGroups = 4096;
inline constexpr uint32_t kMaxGroupBytes = 256u << 20;

struct RecordHead {
  uint32_t magic = kRecordMagic;
  uint16_t version = kRecordVersion;  // another one is refused by name
  uint16_t flags = 0;                 // kRecordTailFlag
  NamespaceHash name_space;
  BlockHash hash;
  BlockHash parent;
  uint64_t numerics_build = 0;
  uint32_t position = 0;     // of the block in its chain
  uint32_t token_count = 0;  // n, 1 .. block_tokens
  uint32_t epoch = 0;
  uint16_t scope_bytes = 0;      // s
  uint16_t publisher_bytes = 0;  // p
  uint16_t stream_count = 0;
  uint16_t group_count = 0;  // g
  uint32_t reserved = 0;
};
static_assert(sizeof(RecordHead) == 88 && std::has_unique_object_representations_v<RecordHead>);
static_assert(offsetof(RecordHead, version) == 4 && offsetof(RecordHead, name_space) == 8 &&
              offsetof(RecordHead, hash) == 24 && offsetof(RecordHead, parent) == 40 &&
              offsetof(RecordHead, numerics_build) == 56 && offsetof(RecordHead, position) == 64 &&
              offsetof(RecordHead, epoch) == 72 && offsetof(RecordHead, stream_count) == 80);

struct StreamHead {
  uint16_t kind = 0;  // StreamKind; unknown ones are skipped
  uint16_t body_bytes = 0;
};
static_assert(sizeof(StreamHead) == 4);

struct StreamBody {
  uint32_t row_values = 0;
  uint16_t tokens_per_row = 0;
  StreamLifetime lifetime = StreamLifetime::kHistory;
  DType dtype = DType::kBf16;
  ScaleRule scale_rule = ScaleRule::kNone;
  uint8_t reserved[3] = {};
};
static_assert(sizeof(StreamBody) == 12 && offsetof(StreamBody, dtype) == 7 &&
              std::has_unique_object_representations_v<StreamBody>);

struct GroupRow {
  uint64_t checksum = 0;  // XXH3-64 of the raw bytes
  uint32_t first_layer = 0;
  uint32_t layers = 0;
  uint32_t raw_bytes = 0;
  uint32_t stored_bytes = 0;
  CodecId codec = CodecId::kStored;
  uint8_t reserved[7] = {};
};
static_assert(sizeof(GroupRow) == 32 && offsetof(GroupRow, codec) == 24 &&
              std::has_unique_object_representations_v<GroupRow>);

struct GroupEntry {
  uint32_t first_layer = 0;
  uint32_t layers = 0;
  uint32_t raw_bytes = 0;
  uint32_t stored_bytes = 0;
  CodecId codec = CodecId::kStored;
  uint64_t checksum = 0;  // XXH3-64 of the raw bytes
  friend bool operator==(const GroupEntry&, const GroupEntry&) = default;
};

struct BlockRecord {
  bool tail = false;
  NamespaceHash name_space;
  std::string scope;
  std::string publisher;  // of a block in `shared`: the tenant whose quota it counts on
  BlockHash hash;
  BlockHash parent;
  uint64_t numerics_build = 0;
  uint32_t position = 0;
  uint32_t epoch = 0;
  std::vector<Stream> streams;  // the known ones; unknown kinds are skipped on reading
  std::vector<GroupEntry> groups;
  std::vector<TokenId> tokens;
  friend bool operator==(const BlockRecord&, const BlockRecord&) = default;

  uint64_t raw_bytes() const;
  uint64_t stored_bytes() const;
};

std::string encode_record(const BlockRecord& record);
// Errors: kCorruption (checksum, lengths), kUnsupported with the version found.
Result<BlockRecord> decode_record(std::string_view bytes);
// The same into `record`, whose memory is used again; it is undefined after an error.
Status decode_record(std::string_view bytes, BlockRecord& record);

}  // namespace ember
