// Retire plan: which epoch of the disk goes next, and which of its blocks are given up with it.
//
// Journey    offload_executor -> [retire_plan] -> block_ledger, disk_tier
// Invariant  of an epoch the first in the order of eviction are given up: those that would go soon
//            anyway, and no more than its dead share lacks; never what may not leave the disk
// Threads    any; pure
// Not here   whether a block may leave (store/cache/block_ledger.h), putting the others again
//            (store/disk_tier.h)
//
// What is live in an epoch that is retired has to be put again: it is worth a write or it is not.
// Evicting in order until some epoch happens to be dead enough gives up as cold blocks in every
// epoch, but those that lie in that one alone make room; the rest stay on the drive, dead.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prefix_index/eviction.h"

namespace ember {

// Without a plan an epoch of which so much is dead is retired before more blocks go, and no other
// one is for some rounds: what is put again stays at half of what comes in.
inline constexpr double kCheapDeadShare = 2.0 / 3;
// What a plan brings an epoch to: at most 3/7 of what comes in is put again.
inline constexpr double kRetiredDeadShare = 0.7;
// The part of all blocks, the first to go, of which none is put again.
inline constexpr double kColdShare = 1.0 / 8;

// A block's place in the order in which a tier's blocks go.
struct EvictionOrder {
  EvictionRank rank = EvictionRank::kUnheld;
  uint64_t last_use = 0;
  friend auto operator<=>(const EvictionOrder&, const EvictionOrder&) = default;
};

struct EpochView {
  uint32_t epoch = 0;
  uint64_t bytes = 0;       // put into it, live or not
  uint64_t live_bytes = 0;  // of these
  // Of some of its live blocks, or all; nothing: that one may not leave.
  std::vector<std::optional<EvictionOrder>> sample;
};

struct RetireChoice {
  size_t index = 0;  // of the epoch
  // What goes no later than this is cold; nothing: no block is.
  std::optional<EvictionOrder> cold;
};

// The epoch that has to give up the least in the order of eviction to be dead to kRetiredDeadShare,
// the deadest where several give up nothing; nothing when none can get there.
std::optional<RetireChoice> choose_epoch(std::span<const EpochView> epochs);

struct EpochBlock {
  uint64_t stored_bytes = 0;
  std::optional<EvictionOrder> order;  // nothing: it may not leave
};

struct GiveUp {
  std::vector<size_t> order;  // the blocks that may leave, the first to go first
  size_t cold = 0;            // so many of these in any case,
  uint64_t bytes = 0;         // and more until it is so much
};

// For an epoch of `bytes`, of which `blocks` are live.
GiveUp plan_give_up(std::span<const EpochBlock> blocks, uint64_t bytes,
                    const std::optional<EvictionOrder>& cold);

}  // namespace ember
