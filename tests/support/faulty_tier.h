// Faulty tier: a disk tier whose weather is bad by seed: errors, short and wrong and late answers.
//
// Journey    block_cache -> [faulty_tier] -> a disk tier
// Invariant  what it answers is an error or the truth; after an error the bytes are garbage
// Threads    any, as a disk tier
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "store/disk_tier.h"

namespace ember::testing {

// How many of a thousand calls go wrong. May be changed at any time.
struct TierWeather {
  uint64_t seed = 1;
  std::atomic<uint32_t> failing_reads{0};
  std::atomic<uint32_t> short_reads{0};    // some bytes arrive, then nothing
  std::atomic<uint32_t> corrupt_reads{0};  // all arrive, and are wrong
  std::atomic<uint32_t> late_reads{0};     // right, after some milliseconds
  std::atomic<uint32_t> failing_writes{0};
  std::atomic<uint32_t> busy_writes{0};
  std::atomic<uint32_t> failing_flushes{0};
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> faults{0};

  void clear();
};

std::unique_ptr<DiskTier> make_faulty_tier(std::unique_ptr<DiskTier> tier,
                                           std::shared_ptr<TierWeather> weather);

}  // namespace ember::testing
