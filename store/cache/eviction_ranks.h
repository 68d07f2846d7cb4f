// Eviction ranks: which of a tier's leaves goes before which, whatever their ages.
//
// Journey    requests, hints, holes -> [eviction_ranks] -> the evictable sets of radix_index
// Owns       a duel for each tier that evicts, the pins, and a mark on blocks that are done with
// Invariant  a rank only orders: what may go at all is the index's and the ledger's rule. A tail is
//            ranked as the block it hangs on
// Threads    engine thread only; pure
// Not here   taking the victim (store/cache/block_ledger.h)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "prefix_index/duel.h"
#include "prefix_index/radix_index.h"
#include "store/cache/pin_table.h"

namespace ember {

class EvictionRanks {
 public:
  // The tiers that evict; each has a duel of its own capacity.
  static constexpr std::array<Tier, 3> kTiers = {Tier::kDevice, Tier::kHost, Tier::kDisk};

  struct Options {
    EvictionPolicy policy = EvictionPolicy::kAuto;
    uint64_t numerics_build = 0;  // blocks of others are never matched
    size_t device_slots = 0;
    size_t host_slots = 0;
  };
  EvictionRanks(RadixIndex& index, uint32_t block_tokens, const Options& options);
  EvictionRanks(const EvictionRanks&) = delete;
  EvictionRanks& operator=(const EvictionRanks&) = delete;

  static ShadowId shadow_id(const BlockHash& hash) { return std::hash<BlockHash>{}(hash); }

  // A request's whole chain, root first, known blocks or not.
  void request(std::span<const ShadowId> chain);
  // A block that a request computed beyond its prompt.
  void extend(BlockId parent, BlockId block);
  // Blocks that the disk holds, or would hold, when it is full.
  void set_disk_capacity(size_t blocks);
  // At reopening: full blocks that the store holds.
  struct Remembered {
    uint64_t last_use = 0;
    ShadowId block = 0;
    uint32_t number = 0;  // in the list of blocks that comes with them
    bool had_hits = false;
  };
  static void sort_by_use(std::vector<Remembered>& blocks);  // Threads: any
  // The disk's shadows take them in, sorted so, as much at a time as recall_some is told. `blocks`:
  // as which each has entered the index, by number.
  void begin_recall(std::vector<Remembered> by_use, std::vector<BlockId> blocks);
  void recall_some(size_t most);
  size_t to_recall() const { return remembered_.size(); }
  // The memory of what was remembered, once all of it is told: much of it is given back by a task.
  struct Told {
    std::vector<Remembered> by_use;
    std::vector<BlockId> blocks;
  };
  std::optional<Told> take_told();
  // What an earlier process knew of the disk's duel (store/cache/shadow_keeper.h): its scores now;
  // its marks, the newest of each queue first, between the blocks that were used since it was
  // written and those that were used before. begin_recall waits with the latter for marks_recalled.
  void expect_marks(int64_t written_unix_us);
  bool wants_marks() const { return recalling_ && expects_marks_ && !newer_left(); }
  void recall_marks(std::span<const ShadowMark> marks);
  void marks_recalled() { expects_marks_ = false; }
  // All that earlier processes knew is told: the duel is as it will be remembered.
  bool recalled() const { return recalling_ && !expects_marks_ && remembered_.empty(); }
  void recall_scores(const Duel::Scores& scores, EvictionPolicy leader);
  void begin_walk() { disk_duel().begin_walk(); }
  bool walk(size_t most, std::vector<ShadowMark>& marks) { return disk_duel().walk(most, marks); }

  // What the chain's own blocks were for is over: `chain` from its leaf up to the first block that
  // branches goes before others.
  void set_done(std::span<const BlockId> chain);
  void set_done(BlockId block);
  // Used again after all.
  void used(BlockId block);
  // False: refused, since pins would hold more than their share of `capacity_blocks`.
  bool pin(std::span<const BlockId> blocks, PinTable::Kind kind, int64_t until_us,
           size_t capacity_blocks);
  void unpin(std::span<const BlockId> blocks);
  void expire_pins(int64_t now_us);
  bool pinned(BlockId block) const { return pins_.kind(block) == PinTable::Kind::kPinned; }
  const PinTable& pins() const { return pins_; }

  // A block became a hole or was healed: from the next refresh on what is below ranks otherwise.
  void hole_changed(bool damaged);
  void refresh();
  // The block's entry is new, or about to go.
  void added(BlockId block);
  void forget(BlockId block);

  const Duel& duel(Tier tier) const { return duels_[static_cast<size_t>(tier)]; }
  size_t memory_bytes() const;
  EvictionRank rank(Tier tier, BlockId block) const;

 private:
  bool below_hole(BlockId block) const;
  bool is_tail(BlockId block) const {
    return index_.entry(block).token_count < block_tokens_;
  }
  bool done(BlockId block) const {
    const auto id = static_cast<size_t>(block);
    return id < done_.size() && done_[id] != 0;
  }
  Duel& disk_duel() { return duels_[static_cast<size_t>(Tier::kDisk)]; }
  bool newer_left() const {
    return !remembered_.empty() && remembered_.back().last_use > marks_written_at_;
  }
  void mark_done(BlockId block, bool done);
  // In every tier, with the tails that hang on it.
  void rerank(BlockId block);
  void rerank(Tier tier, BlockId block);
  void apply(Tier tier, const Duel::Change& change);

  RadixIndex& index_;
  uint32_t block_tokens_;
  uint64_t numerics_build_;
  std::array<Duel, 3> duels_;  // by tier
  std::vector<Remembered> remembered_;  // not yet taken in, the latest use at the back
  std::vector<BlockId> remembered_as_;  // by their numbers
  bool recalling_ = false;
  bool expects_marks_ = false;
  uint64_t marks_written_at_ = 0;  // as times of use
  PinTable pins_;
  std::vector<uint8_t> done_;  // by BlockId
  std::unordered_multimap<BlockId, BlockId> tails_;  // by the block that they hang on
  size_t holes_ = 0;
  bool stale_ = false;
};

// Of a tier's blocks, what pins may hold.
inline constexpr size_t kPinShare = 4;

}  // namespace ember
