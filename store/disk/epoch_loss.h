// Epoch loss: which epoch goes, unsaved, when the drive is full and nothing can be written. Pure.
//
// Journey    disk_tier -> [epoch_loss]
// Invariant  the epoch with the fewest live bytes goes first, those of descendants counted (without
//            their ancestors they are of no use), the newest on ties: so system prompts go last
// Threads    any
// Not here   dropping it (disk_tier_space.cc)
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "prefix_index/block_hash.h"

namespace ember {

// A block record, as far as it matters here. Epoch 0: its groups are lost already (a hole).
struct StoredBlock {
  BlockHash hash;
  BlockHash parent;
  uint32_t position = 0;
  uint32_t epoch = 0;
  uint64_t stored_bytes = 0;
};

// One of `epochs` (not empty). Cost: blocks times the epochs that one chain crosses.
uint32_t epoch_to_lose(std::span<const StoredBlock> blocks, std::span<const uint32_t> epochs);

// The blocks of `epoch`, and the holes, whose records need to stay because a descendant has groups
// that remain.
std::unordered_set<BlockHash> holes_after(std::span<const StoredBlock> blocks, uint32_t epoch);

}  // namespace ember
