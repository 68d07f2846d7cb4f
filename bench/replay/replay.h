// Replay: a trace through the block cache's own index, tiers and eviction.
//
// Slots      without a store: the host tier has `capacity_blocks` slots and is what is measured;
//            the device has just enough for the longest request and is emptied after each
// Store      with `directory`: a store of RocksDB with room for the payload of so many blocks
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "prefix_index/duel.h"
#include "store/disk_tier.h"
#include "store/replay/trace.h"

namespace ember::replay {

struct ReplayOptions {
  uint64_t capacity_blocks = 0;
  EvictionPolicy policy = EvictionPolicy::kAuto;
  std::string directory;       // empty: slots in memory
  uint64_t payload_bytes = 0;  // raw, of a block; only with a store
  // For tests: a disk of this limit in place of the directory's.
  std::function<std::unique_ptr<DiskTier>()> open_disk = {};
  uint64_t disk_limit_bytes = 0;
  std::string shadows_path = {};  // where such a cache writes down what its disk's duel knows
  bool lose_last_shadows = false;  // at the restart: what is written at the end, as a kill does
  double restart_at = 0;  // share of the requests after which it is opened anew; 0: never
};

struct ReplayReport {
  uint64_t requests = 0;
  uint64_t references = 0;
  uint64_t hits = 0;  // leading blocks of each request that the measured tier had
  uint64_t stranded = 0;
  uint64_t switches = 0;
  uint64_t refused_requests = 0;  // no chain could be opened: 0 always
  uint64_t shadow_bytes = 0;
  uint64_t evicted_blocks = 0;
  uint64_t offload_failures = 0;
  double seconds = 0;
  // With a store.
  uint64_t accepted_bytes = 0;  // payload of the blocks that the disk accepted
  uint64_t written_bytes = 0;   // by the file system
  uint64_t most_disk_bytes = 0;
  uint64_t disk_limit_bytes = 0;

  double hit_percent() const {
    return 100.0 * static_cast<double>(hits) / static_cast<double>(references);
  }
  double write_amplification() const {
    return accepted_bytes == 0
               ? 0
               : static_cast<double>(written_bytes) / static_cast<double>(accepted_bytes);
  }
};

// Errors: those of opening a store.
Result<ReplayReport> replay(const Trace& trace, const ReplayOptions& options);

}  // namespace ember::replay
