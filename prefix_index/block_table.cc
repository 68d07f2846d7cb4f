// Block table: entries, lookup by hash, and the evictable sets, kept current at every change.
#include "prefix_index/block_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace ember {
namespace {

constexpr unsigned kAllTiersMask = (1u << kTierCount) - 1;

constexpr unsigned bit(size_t tier) { return 1u << tier; }

}  // namespace

void BlockTable::expect(size_t blocks) {
  buckets_.reach(
      blocks, [this](BlockId block) -> BlockId& { return slot(block).next_in_bucket; },
      [this](BlockId block) { return short_hash(slot(block).entry.hash); });
}

BlockId BlockTable::add(const BlockEntry& entry, ScopeId scope) {
  EMBER_CHECK(!entry.anywhere() && entry.children == 0, "a new block is in no tier and a leaf");
  EMBER_CHECK(entry.token_count > 0, "a block has tokens");
  EMBER_CHECK(static_cast<uint32_t>(scope) <= UINT16_MAX, "no more than 2^16 scopes");
  expect(slots_.size() + 1);
  const BlockId block{slots_.add()};
  EMBER_CHECK(static_cast<uint32_t>(block) < Below::kList, "no more than 2^31 blocks");
  Slot& added = slots_[static_cast<uint32_t>(block)];
  added.entry = entry;
  added.scope = static_cast<uint16_t>(scope);
  added.next_in_bucket = std::exchange(buckets_.head(short_hash(entry.hash)), block);
  if (entry.parent != kNoBlock) change_children(entry.parent, 1);
  return block;
}

void BlockTable::remove(BlockId block) {
  const Slot& removed = slot(block);
  EMBER_CHECK(removed.entry.children == 0, "a block with children is not erased");
  EMBER_CHECK(!removed.entry.anywhere(), "a block that is in a tier is not erased");
  if (removed.entry.parent != kNoBlock) change_children(removed.entry.parent, -1);
  BlockId* link = &buckets_.head(short_hash(removed.entry.hash));
  while (*link != block) link = &slot(*link).next_in_bucket;
  *link = removed.next_in_bucket;
  slots_.remove(static_cast<uint32_t>(block));
}

BlockId BlockTable::find(const BlockHash& hash) const {
  BlockId block = buckets_.head(short_hash(hash));
  while (block != kNoBlock && slot(block).entry.hash != hash) block = slot(block).next_in_bucket;
  return block;
}

BlockId BlockTable::find_short(size_t wanted) const {
  BlockId block = buckets_.head(wanted);
  while (block != kNoBlock && short_hash(slot(block).entry.hash) != wanted) {
    block = slot(block).next_in_bucket;
  }
  return block;
}

void BlockTable::touch(BlockId block, uint64_t now, bool hit) {
  Slot& touched = slot(block);
  if (hit) ++touched.entry.hits;
  // A stored time may lie ahead of the counter after a reopening; use never moves back.
  if (now <= touched.entry.last_use) return;
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    if ((touched.evictable & bit(tier)) == 0) continue;
    evictable_[tier].remove(touched.entry.last_use, block);
    evictable_[tier].add(now, block);
  }
  touched.entry.last_use = now;
}

void BlockTable::set_place(BlockId block, Tier tier, int32_t place) {
  EMBER_CHECK(place >= 0, "a place is not negative");
  Slot& changed = slot(block);
  const bool was_gap = changed.is_gap();
  int32_t& known = changed.entry.place[static_cast<size_t>(tier)];
  const bool moved_within = known >= 0;
  known = place;
  if (moved_within) return;
  count_gap(was_gap, changed);
  ++counts_[static_cast<size_t>(tier)];
  update(block);
}

void BlockTable::clear_place(BlockId block, Tier tier) {
  Slot& changed = slot(block);
  int32_t& known = changed.entry.place[static_cast<size_t>(tier)];
  if (known < 0) return;
  known = -1;
  count_gap(false, changed);
  --counts_[static_cast<size_t>(tier)];
  update(block);
}

void BlockTable::set_damaged(BlockId block, bool damaged) {
  Slot& changed = slot(block);
  const bool was_gap = changed.is_gap();
  changed.entry.damaged = damaged;
  count_gap(was_gap, changed);
}

void BlockTable::change_children(BlockId block, int by) {
  Slot& changed = slot(block);
  const bool was_gap = changed.is_gap();
  changed.entry.children += static_cast<uint32_t>(by);
  count_gap(was_gap, changed);
}

BlockTable::TierMask BlockTable::residence(const BlockEntry& entry) {
  unsigned mask = 0;
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    if (entry.place[tier] >= 0) mask |= bit(tier);
  }
  return mask;
}

BlockTable::TierMask BlockTable::holds_now(const Slot& slot) {
  unsigned mask = 0;
  if (const unsigned in = residence(slot.entry); in != 0) {
    // From its lowest copy down: there, all its copies are at or above.
    mask = (kAllTiersMask << (std::bit_width(in) - 1)) & kAllTiersMask;
  } else {
    for (size_t tier = 0; tier < kTierCount; ++tier) {
      if (slot.held_by[tier] > 0) mask |= bit(tier);
    }
  }
  return mask;
}

BlockTable::TierMask BlockTable::evictable_now(const Slot& slot) {
  const unsigned in = residence(slot.entry);
  // Whatever is stored below holds its parent in the lowest tier, so that count speaks for all.
  if (std::has_single_bit(in) && slot.held_by[kTierCount - 1] > 0) return 0;
  unsigned mask = 0;
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    if ((in & bit(tier)) != 0 && slot.held_by[tier] == 0) mask |= bit(tier);
  }
  return mask;
}

void BlockTable::update(BlockId block) {
  // A parent that has a copy holds its own parent by that alone, so the way up ends there; only
  // through blocks without a copy does it go on.
  while (block != kNoBlock) {
    Slot& changed = slot(block);
    update_sets(block, changed);
    const TierMask holds = holds_now(changed);
    const TierMask flipped = holds ^ changed.holds;
    if (flipped == 0) return;
    changed.holds = holds & kAllTiersMask;
    block = changed.entry.parent;
    if (block == kNoBlock) return;
    Slot& parent = slot(block);
    for (size_t tier = 0; tier < kTierCount; ++tier) {
      if ((flipped & bit(tier)) == 0) continue;
      if ((holds & bit(tier)) != 0) {
        ++parent.held_by[tier];
      } else {
        --parent.held_by[tier];
      }
    }
  }
}

void BlockTable::update_sets(BlockId block, Slot& slot) {
  const TierMask evictable = evictable_now(slot);
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    if (((evictable ^ slot.evictable) & bit(tier)) == 0) continue;
    if ((evictable & bit(tier)) != 0) {
      evictable_[tier].add(slot.entry.last_use, block);
    } else {
      evictable_[tier].remove(slot.entry.last_use, block);
    }
  }
  slot.evictable = evictable & kAllTiersMask;
}

size_t BlockTable::memory_bytes() const {
  size_t sets = 0;
  for (const LeafLru& set : evictable_) sets += set.memory_bytes();
  return slots_.memory_bytes() + buckets_.memory_bytes() + sets;
}

void BlockTable::check_invariants(std::span<const BlockId> blocks) const {
  EMBER_CHECK(blocks.size() == slots_.size(), "every block is in the tree once");
  std::vector<Slot> expected(slots_.end());
  std::array<size_t, kTierCount> counts{};
  std::array<size_t, kTierCount> evictable{};
  for (BlockId block : blocks) {
    const Slot& child = slot(block);
    for (size_t tier = 0; tier < kTierCount; ++tier) {
      if (child.entry.place[tier] >= 0) ++counts[tier];
      if ((child.evictable & bit(tier)) != 0) ++evictable[tier];
    }
    if (child.entry.parent == kNoBlock) continue;
    Slot& parent = expected[static_cast<uint32_t>(child.entry.parent)];
    ++parent.entry.children;
    for (size_t tier = 0; tier < kTierCount; ++tier) {
      if ((child.holds & bit(tier)) != 0) ++parent.held_by[tier];
    }
  }
  for (BlockId block : blocks) check_block(block, expected[static_cast<uint32_t>(block)]);
  EMBER_CHECK(counts == counts_, "the blocks of a tier are counted");
  size_t gaps = 0;
  for (BlockId block : blocks) gaps += slot(block).is_gap() ? 1u : 0u;
  EMBER_CHECK(gaps == gaps_, "blocks in no tier between others are counted");
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    EMBER_CHECK(evictable_[tier].size() == evictable[tier], "an evictable set has strangers");
  }
}

void BlockTable::check_block(BlockId block, const Slot& expected) const {
  const Slot& found = slot(block);
  EMBER_CHECK(found.entry.children == expected.entry.children, "children are counted");
  EMBER_CHECK(found.held_by == expected.held_by, "children that hold their parent are counted");
  EMBER_CHECK(found.holds == holds_now(found), "what a block holds is current");
  EMBER_CHECK(found.evictable == evictable_now(found), "where a block may leave is current");
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    EMBER_CHECK(evictable_[tier].contains(found.entry.last_use, block) ==
                    ((found.evictable & bit(tier)) != 0),
                "a block is in the sets of the tiers that it may leave, by its last use");
  }
  BlockId link = buckets_.head(short_hash(found.entry.hash));
  while (link != kNoBlock && link != block) link = slot(link).next_in_bucket;
  EMBER_CHECK(link == block, "a block is found by its hash");
}

}  // namespace ember
