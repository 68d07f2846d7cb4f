// Eviction: in which order the blocks of a tier may go. Leaf-first, least recently used.
//
// Journey    radix_index -> [eviction] -> the tier that needs room
// Invariant  a block may leave a tier when none of its children has its only copies at or above
//            that tier, and its last tier when no child is stored at all (block_table.h draws the
//            rule); so nothing that stays stored becomes unreachable, and disk loses leaves only
// Threads    engine thread only; pure
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>

namespace ember {

// A block's entry in the index; stable while the entry lives, then reused.
enum class BlockId : uint32_t {};
inline constexpr BlockId kNoBlock{0xffffffffu};

// The evictable blocks of one tier, by last use.
class LeafLru {
 public:
  void add(uint64_t last_use, BlockId block) { order_.emplace(last_use, block); }
  void remove(uint64_t last_use, BlockId block) { order_.erase({last_use, block}); }
  bool contains(uint64_t last_use, BlockId block) const {
    return order_.contains({last_use, block});
  }
  size_t size() const { return order_.size(); }

  // The oldest block for which `may_go` holds (no lease, for instance), or nothing.
  std::optional<BlockId> oldest(const std::function<bool(BlockId)>& may_go) const {
    for (const auto& [last_use, block] : order_) {
      if (may_go(block)) return block;
    }
    return std::nullopt;
  }

 private:
  std::set<std::pair<uint64_t, BlockId>> order_;
};

}  // namespace ember
