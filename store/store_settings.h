// Store settings: what an operator may set of a store beyond its place and its size.
//
// Journey    command line, service -> [store_settings] -> block_cache
// Invariant  the defaults serve; nothing here changes an answer, only what is kept and how fast
// Threads    any; values
// Not here   keys (store/encryption.h), tenants and their quotas (store/tenants.h)
#pragma once

#include <cstdint>
#include <optional>

#include "prefix_index/duel.h"
#include "store/disk_tier.h"

namespace ember {

struct StoreSettings {
  // Blocks are flushed when the oldest that is not is so old.
  int64_t flush_age_us = 10'000'000;
  // Of the store's bytes, for the access log (store/access_log.h), at most a quarter. 0: none is
  // kept, an old one is removed.
  uint64_t access_log_bytes = 0;
  // After opening, blocks that the access log says were used lately and often are read into free
  // RAM, at most so many bytes a second and never beside requests. 0: none are.
  uint64_t warm_up_bytes_per_second = 0;
  // Background proof of what is stored: at most so many bytes a second, never beside restores; a
  // pass over all blocks begins so long after the last one ended. 0: never.
  uint64_t scrub_bytes_per_second = uint64_t{8} << 20;
  int64_t scrub_interval_us = int64_t{24} * 3600 * 1'000'000;
  EvictionPolicy eviction = EvictionPolicy::kAuto;
  // Of the store's file system, bytes that are left to others. Unset: 1/32 of it, at most 1 GiB.
  std::optional<uint64_t> free_floor_bytes = {};
  // Drives wear out: beyond this many bytes a day blocks wait in RAM or are given up. 0: no limit.
  uint64_t write_bytes_per_day = 0;
  // What flushing and reclaiming may write a second, so that restores are not starved. 0: no limit.
  uint64_t write_bytes_per_s = kDefaultWriteBytesPerSecond;
  // Blocks on disk that nobody has used for so long go. 0: no limit.
  int64_t max_age_us = 0;
};

}  // namespace ember
