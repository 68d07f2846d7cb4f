// Leaf LRU: a shadow directory that says what a leaf-first LRU of this capacity would hold.
//
// Journey    requests -> [leaf_lru] -> duel
// Owns       the ids of at most `capacity` blocks
// Invariant  a block's place is older than that of the block before it in its chain, so the oldest
//            is always a leaf: what is held is closed towards the root
// Threads    engine thread only; pure
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "prefix_index/shadow_table.h"

namespace ember {

class LeafLruShadow {
 public:
  explicit LeafLruShadow(size_t capacity) : capacity_(capacity) {}

  // A request for a chain, root first. Returns its hits: the leading blocks that were held. What
  // came or went is appended to `changed` (may be null).
  size_t request(std::span<const ShadowId> chain, std::vector<ShadowId>* changed);
  // One more block at the end of a chain whose last block is `parent` (no hit is counted).
  void extend(ShadowId parent, ShadowId block, std::vector<ShadowId>* changed);
  // At reopening: a block that was stored, the latest use first; older than all that is held.
  void recall(ShadowId block);
  void set_capacity(size_t capacity, std::vector<ShadowId>* changed);
  // All that is held, the oldest first, to be recalled in the opposite order (shadow_table.h).
  void begin_walk() { table_.begin_walk(0); }
  std::optional<ShadowMark> walk() {
    const Table::Ref ref = table_.walk();
    if (ref == Table::kNone) return std::nullopt;
    return ShadowMark{table_.at(ref).id, 0, 0};
  }

  void prefetch(ShadowId block) const { table_.prefetch(block); }
  bool holds(ShadowId block) const { return table_.find(block) != Table::kNone; }
  size_t size() const { return table_.size(0); }
  size_t memory_bytes() const { return table_.memory_bytes(); }

 private:
  using Table = ShadowTable<1>;
  void shrink(size_t capacity, std::vector<ShadowId>* changed);

  size_t capacity_;
  Table table_;
};

}  // namespace ember
