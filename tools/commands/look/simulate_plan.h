// Simulate plan: which capacities a simulation goes through, as bytes of a store and as blocks.
//
// Journey    flags, store, trace -> [simulate_plan] -> simulate
// Invariant  sizes are those of --disk-bytes, of which blocks have their share (store/disk_plan.h);
//            the capacities rise, none comes twice
// Threads    any; pure
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace ember {

// One capacity as it was asked for: a size of the store, or a share of the distinct blocks.
struct CapacityAsked {
  uint64_t disk_bytes = 0;
  double percent = 0;  // where disk_bytes is 0
};
// "1GiB,2GiB" or "5%,10%". Errors: kInvalidArgument naming what is no capacity.
Result<std::vector<CapacityAsked>> parse_capacities(const std::string& text);

// What is known of the store and the requests.
struct CapacityBasis {
  uint64_t distinct_blocks = 0;
  double block_bytes = 0;  // that one takes of the blocks' share; 0: not known, so sizes are not
  uint64_t present_disk_bytes = 0;  // of the store; 0: not known, or there is none
  uint64_t present_blocks = 0;
};

struct PlannedCapacity {
  uint64_t blocks = 0;
  uint64_t disk_bytes = 0;  // 0: not known, or less than the least store
  bool present = false;     // what the store has now
};

// Nothing asked for: around what the store has, or shares of the distinct blocks where that is not
// known or would hold them several times over. The present one is always among them.
// Errors: kInvalidArgument (a size below the least store's, or where no block's size is known).
Result<std::vector<PlannedCapacity>> plan_capacities(const std::vector<CapacityAsked>& asked,
                                                     const CapacityBasis& basis);

// The least --disk-bytes whose share for blocks is so much.
uint64_t disk_bytes_for(uint64_t blocks_bytes);

}  // namespace ember
