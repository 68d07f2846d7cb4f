// Record: the bytes of a block's metadata in the store, drawn once.
//
// Journey    offload -> [record] -> disk_tier; reopening and restore read it back
// Invariant  integers are little-endian; every length is bounded before it is trusted; the last
//            8 bytes are the XXH3-64 of all bytes before them
// Threads    any; pure
// Not here   where records live (store/disk_tier.h), how a group's bytes are coded (store/codec.h)
//
//   block record          bytes
//     magic "EMBK"            4
//     format version          2   kRecordVersion; another one is refused by name
//     flags                   2   bit 0: tail record
//     namespace              16
//     block hash             16
//     parent hash            16
//     numerics build          8
//     position                4   of the block in its chain
//     token count n           4   1 .. block_tokens
//     epoch                   4
//     scope length s          2, then s bytes
//     publisher length p      2, then p bytes
//     stream count            2, then per stream: kind 2, body length 2, body
//     group count             2, then per group:  first layer 4, layers 4, raw bytes 4,
//                                                 stored bytes 4, codec 1, pad 3, XXH3-64 of raw 8
//     token ids             4 n
//     checksum                8
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "prefix_index/token.h"
#include "store/codec.h"
#include "store/kv_layout.h"

namespace ember {

inline constexpr uint32_t kRecordMagic = 0x4b424d45;  // "EMBK"
inline constexpr uint16_t kRecordVersion = 1;
inline constexpr uint32_t kMaxBlockTokens = 4096;
inline constexpr uint32_t kMaxGroups = 4096;
inline constexpr uint32_t kMaxGroupBytes = 256u << 20;

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

}  // namespace ember
