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
// Not here   what follows a block, and its tokens (prefix_index/block_tree.h)
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

// What follows a block in its own scope: nothing, a block, or a list of several (block_tree.h).
struct Below {
  BlockId block = kNoBlock;
  static constexpr uint32_t kList = 0x80000000u;
  static Below of_list(uint32_t number) { return {BlockId{kList | number}}; }
  bool is_list() const {
    return block != kNoBlock && (static_cast<uint32_t>(block) & kList) != 0;
  }
  uint32_t list() const { return static_cast<uint32_t>(block) & ~kList; }
};

class BlockTable {
 public:
  // Room to find so many blocks by hash, so that add() makes none.
  void expect(size_t blocks);
  void prefetch(const BlockHash& hash) const {
    __builtin_prefetch(&buckets_.head(short_hash(hash)));
  }
  // A new block in no tier, which is counted as a child of its parent.
  BlockId add(const BlockEntry& entry, ScopeId scope);
  // Forgets a block without children and in no tier.
  void remove(BlockId block);

  const BlockEntry& entry(BlockId block) const { return slot(block).entry; }
  bool has(BlockId block) const {
    const auto number = static_cast<uint32_t>(block);
    return number < slots_.end() && slots_[number].in_use();
  }
  ScopeId scope(BlockId block) const { return ScopeId{slot(block).scope}; }
  const Below& below(BlockId block) const { return slot(block).below; }
  Below& below(BlockId block) { return slot(block).below; }
  // A block of this hash (any of them, should there be several), or kNoBlock.
  BlockId find(const BlockHash& hash) const;
  // The same by std::hash of its hash alone, which is what a shadow directory keeps.
  BlockId find_short(size_t short_hash) const;

  void touch(BlockId block, uint64_t now, bool hit);
  void set_place(BlockId block, Tier tier, int32_t place);
  void clear_place(BlockId block, Tier tier);
  void set_damaged(BlockId block, bool damaged);
  void set_numerics_build(BlockId block, uint64_t build) {
    slot(block).entry.numerics_build = build;
  }

  LeafLru& evictable(Tier tier) { return evictable_[static_cast<size_t>(tier)]; }
  const LeafLru& evictable(Tier tier) const { return evictable_[static_cast<size_t>(tier)]; }
  size_t size() const { return slots_.size(); }
  size_t count(Tier tier) const { return counts_[static_cast<size_t>(tier)]; }
  // Blocks with children that are in no tier, without being known holes: while there is none,
  // whatever is in a tier can be reached or lies below a hole.
  size_t gaps() const { return gaps_; }
  size_t memory_bytes() const;

  // Aborts unless counts, sets and hash lookup agree with the entries. `blocks`: all of them.
  void check_invariants(std::span<const BlockId> blocks) const;

 private:
  using TierMask = unsigned;  // bit t: tier t
  struct Slot {
    [[no_unique_address]] BlockEntry entry;  // what its alignment leaves over is used
    uint8_t holds : kTierCount = 0;          // tiers in which this block holds its parent
    uint8_t evictable : kTierCount = 0;      // tiers whose set has this block
    uint16_t scope = 0;
    Below below;
    BlockId next_in_bucket = kNoBlock;
    std::array<uint32_t, kTierCount> held_by{};  // children that hold this block in each tier
    bool in_use() const { return entry.token_count > 0; }
    bool is_gap() const { return entry.children > 0 && !entry.damaged && !entry.anywhere(); }
  };
  static_assert(sizeof(Slot) == 96, "a million blocks take a million of these");

  Slot& slot(BlockId block) { return const_cast<Slot&>(std::as_const(*this).slot(block)); }
  const Slot& slot(BlockId block) const {
    EMBER_CHECK(has(block), "no such block");
    return slots_[static_cast<uint32_t>(block)];
  }
  static size_t short_hash(const BlockHash& hash) { return std::hash<BlockHash>{}(hash); }
  static TierMask residence(const BlockEntry& entry);
  static TierMask holds_now(const Slot& slot);
  static TierMask evictable_now(const Slot& slot);
  // Brings the sets up to date after `block` changed, and upwards as far as that matters.
  void update(BlockId block);
  void update_sets(BlockId block, Slot& slot);
  void change_children(BlockId block, int by);
  void count_gap(bool was, const Slot& slot) {
    gaps_ = gaps_ + (slot.is_gap() ? 1u : 0u) - (was ? 1u : 0u);
  }
  void check_block(BlockId block, const Slot& expected) const;

  StablePool<Slot> slots_;
  HashBuckets<BlockId, kNoBlock> buckets_;  // of the chains by hash
  std::array<LeafLru, kTierCount> evictable_;
  std::array<size_t, kTierCount> counts_{};
  size_t gaps_ = 0;
};

}  // namespace ember
