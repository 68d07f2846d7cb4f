// Block table: the entries of the index by number and by hash, and who may leave which tier.
//
// Journey    radix_index -> [block_table] -> eviction
// Owns       one slot for each known block; for each tier the set of blocks that may go
// Invariant  block b may leave tier T when nothing that stays stored needs it there:
//            (1) no child holds b in T, and (2) if T is b's last tier, no child holds b at all.
//            A child with copies holds its parent in T when all of them are at or above T. A child
//            without a copy (a hole, or not yet written) holds it as its own children do: once the
//            hole is healed, what is stored below it can be reached again, so its parents stay.
// Threads    engine thread only; pure
// Not here   where a block is in the tree of tokens (prefix_index/run_tree.h)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "prefix_index/hash_buckets.h"
#include "prefix_index/radix_index.h"
#include "prefix_index/stable_pool.h"

namespace ember {

// A node of the run tree.
enum class NodeId : uint32_t {};
inline constexpr NodeId kNoNode{0xffffffffu};

class BlockTable {
 public:
  // Room to find so many blocks by hash, so that add() makes none.
  void expect(size_t blocks);
  // A new block in no tier, which is counted as a child of its parent.
  BlockId add(const BlockEntry& entry, NodeId node);
  // Forgets a block without children and in no tier.
  void remove(BlockId block);

  const BlockEntry& entry(BlockId block) const { return slot(block).entry; }
  NodeId node(BlockId block) const { return slot(block).node; }
  void set_node(BlockId block, NodeId node) { slot(block).node = node; }
  // A block of this hash (any of them, should there be several), or kNoBlock.
  BlockId find(const BlockHash& hash) const;
  // The same by std::hash of its hash alone, which is what a shadow directory keeps.
  BlockId find_short(size_t short_hash) const;

  void touch(BlockId block, uint64_t now, bool hit);
  void set_place(BlockId block, Tier tier, int32_t place);
  void clear_place(BlockId block, Tier tier);
  void set_damaged(BlockId block, bool damaged) { slot(block).entry.damaged = damaged; }
  void set_numerics_build(BlockId block, uint64_t build) {
    slot(block).entry.numerics_build = build;
  }

  LeafLru& evictable(Tier tier) { return evictable_[static_cast<size_t>(tier)]; }
  const LeafLru& evictable(Tier tier) const { return evictable_[static_cast<size_t>(tier)]; }
  size_t size() const { return slots_.size(); }
  size_t count(Tier tier) const { return counts_[static_cast<size_t>(tier)]; }
  size_t memory_bytes() const;

  // Aborts unless counts, sets and hash lookup agree with the entries. `blocks`: all of them.
  void check_invariants(std::span<const BlockId> blocks) const;

 private:
  using TierMask = uint8_t;  // bit t: tier t
  struct Slot {
    [[no_unique_address]] BlockEntry entry;  // the masks lie in what its alignment leaves over
    TierMask holds = 0;                      // tiers in which this block holds its parent
    TierMask evictable = 0;                  // tiers whose set has this block
    NodeId node = kNoNode;                   // kNoNode: the slot is free
    BlockId next_in_bucket = kNoBlock;
    std::array<uint32_t, kTierCount> held_by{};  // children that hold this block in each tier
  };
  static_assert(sizeof(Slot) == 96, "a million blocks take a million of these");

  Slot& slot(BlockId block) { return const_cast<Slot&>(std::as_const(*this).slot(block)); }
  const Slot& slot(BlockId block) const {
    const uint32_t number = static_cast<uint32_t>(block);
    EMBER_CHECK(number < slots_.end() && slots_[number].node != kNoNode, "no such block");
    return slots_[number];
  }
  static size_t short_hash(const BlockHash& hash) { return std::hash<BlockHash>{}(hash); }
  static TierMask residence(const BlockEntry& entry);
  static TierMask holds_now(const Slot& slot);
  static TierMask evictable_now(const Slot& slot);
  // Brings the sets up to date after `block` changed, and upwards as far as that matters.
  void update(BlockId block);
  void update_sets(BlockId block, Slot& slot);
  void check_block(BlockId block, const Slot& expected) const;

  StablePool<Slot> slots_;
  HashBuckets<BlockId, kNoBlock> buckets_;  // of the chains by hash
  std::array<LeafLru, kTierCount> evictable_;
  std::array<size_t, kTierCount> counts_{};
};

}  // namespace ember
