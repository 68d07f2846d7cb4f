// GC plan: what of a store can go before its time: blocks that nothing reaches, blocks of other
// numerics builds, the oldest leaves where it is above its limit; epochs of which much is dead.
// Pure.
//
// Journey    block_tree, epochs -> [gc_plan] -> gc -> store_editor
// Invariant  children before parents, as in removal_plan.h; an epoch is rewritten only where that
//            gives back more than it costs, or where the limit asks for it
// Threads    any
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "store/disk_tier.h"
#include "tools/commands/change/removal_plan.h"
#include "tools/commands/look/block_tree.h"

namespace ember {

// What the tree does not keep of a record.
struct RecordFacts {
  uint32_t epoch = 0;
  uint64_t numerics_build = 0;
};
using FactsByHash = std::unordered_map<BlockHash, RecordFacts>;

// Nodes whose numerics build is another one than that of the block of their namespace that was used
// last.
std::vector<bool> foreign_nodes(const BlockTree& tree, const FactsByHash& facts);

// Chooses more nodes, leaves first and of these the one that was used longest ago, until the blocks
// that are chosen add up to `bytes`, or none is left that may go. Tails lie among the conversations
// and make no room for blocks: one goes only with the block that it hangs on.
void choose_oldest(const BlockTree& tree, uint64_t bytes, std::vector<bool>& chosen);

struct EpochChoice {
  uint32_t epoch = 0;
  uint64_t dead_bytes = 0;  // given back
  uint64_t live_bytes = 0;  // put again
};
// Epochs of which at least `least_dead_share` is dead once the plan's blocks are gone, the deadest
// first; any with something dead where `within_limit` (of payload) is passed, until it is not.
std::vector<EpochChoice> choose_epochs(const std::vector<DiskTier::EpochUse>& epochs,
                                       const BlockTree& tree, const RemovalPlan& plan,
                                       const FactsByHash& facts, double least_dead_share,
                                       uint64_t within_limit);

}  // namespace ember
