// Disk format: the keys and small rows of the disk tier's RocksDB, drawn once.
//
// Journey    disk_tier -> [disk_format] -> RocksDB
// Invariant  big-endian numbers in keys, so that keys of one epoch lie together; each small row
//            ends with the XXH3-64 of its key and of the bytes before it
// Threads    any; pure
// Not here   the block record itself (store/record.h)
//
//   family `data`      epoch 4, block hash 16, group 2    -> payload as the codec made it
//                      0, four bytes                      -> nothing: beside each dropped range
//   family `default`   'b', block hash 16                 -> block record
//                      'e', epoch 4                       -> bytes 8, live blocks 4, files 4,
//                                                            rewritten 1, checksum 8
//                      't', block hash 16                 -> last use 8, hits 4, checksum 8
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "store/disk_tier.h"

namespace ember {

enum class MetaKind : char { kBlock = 'b', kEpoch = 'e', kTouch = 't' };

// Epochs count from 1 and stay within the places of the radix index, which are signed.
inline constexpr uint32_t kMaxEpoch = static_cast<uint32_t>(std::numeric_limits<int32_t>::max());

struct EpochRow {
  uint64_t bytes = 0;  // payload put into the epoch, live or not
  uint32_t live = 0;   // blocks whose current record names the epoch
  uint32_t files = 0;  // flushes that were asked for while it was open
  bool rewritten = false;  // its groups were put again by reclaiming
};

std::string big_endian_32(uint32_t value);

std::string data_key(uint32_t epoch, const BlockHash& hash, uint32_t group);
// The first key of an epoch; that of epoch + 1 is the first after it.
inline std::string data_epoch_key(uint32_t epoch) { return big_endian_32(epoch); }

// Lies in no epoch. RocksDB 7.8 aborts when a compaction that drops a range and keeps no row fails
// as it syncs its empty table; with this row beside each dropped range it always keeps one.
inline std::string data_floor_key() { return data_epoch_key(0); }

// A kind and four bytes of a number: an epoch's key, or the place of a hash that begins with them.
std::string number_key(MetaKind kind, uint32_t number);
std::string block_key(const BlockHash& hash);
std::string touch_key(const BlockHash& hash);
std::string epoch_key(uint32_t epoch);

// What follows the kind in a meta key; nothing when the key has another length.
std::optional<BlockHash> hash_of_key(std::string_view key);
std::optional<uint32_t> epoch_of_key(std::string_view key);

std::string encode_touch(std::string_view key, const TouchRecord& touch);
std::optional<TouchRecord> decode_touch(std::string_view key, std::string_view value);
std::string encode_epoch(std::string_view key, const EpochRow& row);
std::optional<EpochRow> decode_epoch(std::string_view key, std::string_view value);

}  // namespace ember
