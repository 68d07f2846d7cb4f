// Eviction: in which order the blocks of a tier may go. Leaf first, by rank, then by last use.
//
// Journey    radix_index -> [eviction] -> the tier that needs room
// Owns       for each tier a heap of the blocks that may leave it
// Invariant  a block may leave a tier when none of its children has its only copies at or above
//            that tier, and its last tier when no child is stored at all (block_table.h draws the
//            rule); so nothing that stays stored becomes unreachable, and disk loses leaves only
// Threads    engine thread only; pure
// Not here   what a block's rank is (prefix_index/duel.h, store/cache/eviction_ranks.h)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace ember {

// A block's entry in the index; stable while the entry lives, then reused.
enum class BlockId : uint32_t {};
inline constexpr BlockId kNoBlock{0xffffffffu};

// What goes before what, whatever its age.
enum class EvictionRank : uint8_t {
  kBelowHole,  // nothing can reach it until its hole is healed
  kForeign,    // of another numerics build: never matched
  kDone,       // a hint says that it is not needed again
  kUnheld,     // the leading shadow has let it go
  kHeld,       // the leading shadow holds it
  kExpected,   // a hint says that it will be used soon
  kPinned,     // stays while anything else can go
};

// The evictable blocks of one tier, the next to go first.
class LeafLru {
 public:
  using RankOf = std::function<EvictionRank(BlockId)>;

  // Asked whenever a block enters the set, and by rerank. Without it all are kUnheld: plain LRU.
  void set_rank_source(RankOf rank_of);

  void add(uint64_t last_use, BlockId block);
  void remove(uint64_t last_use, BlockId block);
  bool contains(uint64_t last_use, BlockId block) const;
  // Room for so many blocks in the set, of so many that the index knows.
  void reserve(size_t known, size_t members);
  size_t size() const { return heap_.size(); }
  size_t memory_bytes() const;

  // The block's rank, or those of all blocks, may have changed.
  void rerank(BlockId block);
  void rerank_all();

  // The first block for which `may_go` holds (no lease, for instance), or nothing.
  // Cost: logarithmic, times the blocks for which it does not hold.
  std::optional<BlockId> oldest(const std::function<bool(BlockId)>& may_go) const;

 private:
  struct Node {
    uint64_t last_use = 0;
    BlockId block = kNoBlock;
    EvictionRank rank = EvictionRank::kUnheld;
    friend bool operator<(const Node& a, const Node& b) {
      if (a.rank != b.rank) return a.rank < b.rank;
      if (a.last_use != b.last_use) return a.last_use < b.last_use;
      return a.block < b.block;
    }
  };

  static constexpr uint32_t kAbsent = 0xffffffffu;
  uint32_t position(BlockId block) const;
  EvictionRank rank_of(BlockId block) const {
    return rank_of_ ? rank_of_(block) : EvictionRank::kUnheld;
  }
  void put(uint32_t at, const Node& node);
  void sift(uint32_t at);

  RankOf rank_of_;
  std::vector<Node> heap_;           // binary; a node goes before those below it
  std::vector<uint32_t> positions_;  // in heap_, by BlockId
  mutable std::vector<uint32_t> frontier_;  // of a search; kept for its memory
};

}  // namespace ember
