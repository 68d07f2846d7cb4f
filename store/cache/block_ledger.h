// Block ledger: the index together with the slots: which block is where, and what may go.
//
// Journey    commit, restore, offload -> [block_ledger] -> radix_index, slot pools
// Owns       the radix index and a note for each of its blocks
// Invariant  a place in the index names a ready slot (or a record that the disk accepted); a copy
//            goes only if no lease holds it, the last one only if no chain or transfer needs it;
//            the scope book counts on disk what the places say
// Threads    engine thread only
// Not here   moving bytes (store/cache/restore_executor.h, store/cache/offload_executor.h)
//
// Leaf first: a use is noted from the leaf to the root with a rising counter, so that of one chain
// the deepest blocks are always the oldest.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "prefix_index/radix_index.h"
#include "prefix_index/stable_pool.h"
#include "store/cache/device_pool.h"
#include "store/cache/eviction_ranks.h"
#include "store/cache/retire_plan.h"
#include "store/disk_tier.h"
#include "store/cache/host_tier.h"
#include "store/cache/scope_book.h"

namespace ember {

// The place of a tail in Tier::kDisk: it is in the conversations' database, in no epoch.
inline constexpr int32_t kTailEpoch = 0x7fffffff;

// What the cache knows of a block beside its index entry.
struct BlockNotes {
  int64_t last_use_unix_us = 0;
  uint32_t stored_bytes = 0;  // of its record's payload
  uint32_t earlier_hits = 0;  // of earlier processes, from the touch record
  uint32_t holders = 0;       // chains and transfers that name the block
  uint16_t disk_readers = 0;  // restores that read its record
  bool touched : 1 = false;       // used since its last touch record
  bool read_failed : 1 = false;   // its record is to be written again when it is committed again
  bool stale_record : 1 = false;  // the disk has one that counts no more, until it is written again
};
static_assert(sizeof(BlockNotes) == 24, "a million blocks take a million of these");

class BlockLedger {
 public:
  BlockLedger(ScopeBook& scopes, uint32_t block_tokens, DevicePool& device, HostTier& host,
              const Clock& clock, const EvictionRanks::Options& eviction);

  const RadixIndex& index() const { return index_; }
  const BlockEntry& entry(BlockId block) const { return index_.entry(block); }
  bool is_tail(BlockId block) const { return entry(block).token_count < block_tokens_; }
  BlockNotes& notes(BlockId block);
  const BlockNotes& notes(BlockId block) const;
  // The tenant on whose quota the block counts: its own, or the one that published it; `shared`
  // where there is none. The publisher's name is empty for what nobody published.
  ScopeId payer(BlockId block) const;
  void set_publisher(BlockId block, ScopeId publisher);
  std::string publisher(BlockId block) const;
  // Shared blocks that a tenant published, in no order.
  std::vector<BlockId> published_by(ScopeId publisher) const;
  // The hash of the block before this one; the scope's root for a first block.
  const BlockHash& parent_hash(BlockId block) const;

  // The scope's entry for `tokens` after `parent`, made if absent.
  BlockId insert(ScopeId scope, BlockId parent, TokenSpan tokens, const BlockHash& hash,
                 uint64_t numerics_build);
  // Marks the blocks of one chain, root first, as used now.
  void use(const std::vector<BlockId>& blocks, bool hit);
  // At reopening: the entry for a block that the store holds, made if absent, as old as an earlier
  // process says. Older than all that is used from now on; blocks may come in any order.
  struct Adopted {
    BlockId block = kNoBlock;
    bool made = false;  // else it was there, and is unchanged
  };
  Adopted adopt(ScopeId scope, BlockId parent, TokenSpan tokens, const BlockHash& hash,
                uint64_t numerics_build, const TouchRecord& touch);
  // The same for an entry that is there already: its hits, and its age unless it was used since.
  void recall(BlockId block, const TouchRecord& touch);
  // Before many of them come, in the order of their chains (prefix_index/radix_index.h).
  void expect(size_t blocks, size_t leaves) { index_.expect(blocks, leaves); }
  // The place in the order of use that the store's records give a block of a process that opened
  // at this time. Threads: any.
  static uint64_t use_order(uint32_t position, const TouchRecord& touch, uint64_t opened_unix_us);
  uint64_t opened_unix_us() const { return opened_unix_us_; }

  // Who goes first in each tier, by shadows, hints and pins.
  EvictionRanks& ranks() { return ranks_; }
  const EvictionRanks& ranks() const { return ranks_; }
  // All that the store holds is in the index: the disk's shadows begin with it.
  void loaded(uint64_t limit_bytes, std::vector<EvictionRanks::Remembered> by_use,
              std::vector<BlockId> blocks);
  // How many blocks the disk holds when it is full: by this limit and the mean of what is stored,
  // until it has been full and the number is known.
  void expect_disk_capacity(uint64_t limit_bytes);
  void disk_is_full();
  // An earlier process, with the same limit, knew the number.
  void recall_disk_capacity(size_t blocks);
  bool disk_was_full() const { return disk_was_full_; }

  // While held, a block keeps its entry and its last copy.
  void hold(BlockId block) { ++notes(block).holders; }
  void let_go(BlockId block);

  // A slot to fill: a free one, or that of the oldest block that may go. Nothing if all are leased.
  std::optional<SlotLease> take_device_slot() { return take_slot(Tier::kDevice); }
  std::optional<SlotLease> take_host_slot() { return take_slot(Tier::kHost); }
  // Where no host slot can be taken: blocks that the disk refused keep theirs while others hang on
  // them that are on the device alone. The oldest leaf of the device goes. False: none may.
  bool shed_device_leaf();
  // A lease of the copy in a tier (kDevice, kHost) that has one.
  SlotLease lease_copy(BlockId block, Tier tier);
  // The slot of this lease is whole and proven: it becomes the block's copy in the tier. Nothing
  // happens if the tier has one already.
  void publish(BlockId block, Tier tier, const SlotLease& lease);
  // The slot of this lease is written again: no longer the block's copy on the device.
  void unpublish_device(BlockId block, const SlotLease& lease);
  void set_stored(BlockId block, int32_t epoch, uint64_t stored_bytes);
  // Forgets the copy in a tier; the entry too, if nothing needs it.
  void drop_copy(BlockId block, Tier tier);

  // At reopening: the record of a block whose groups are lost.
  void add_hole(BlockId block) { set_damaged(block, true); }
  // True: nothing hung below that hole, and its entry is gone.
  bool forget_empty_hole(const BlockHash& hash);

  // Its copy on disk is wrong: a hole until it is committed again, unless it has a better copy.
  void mark_damaged(BlockId block);
  // Before a block that is known but unusable (a hole, another numerics build) is committed anew.
  void reset(BlockId block, uint64_t numerics_build);
  // Nobody will write over the block's stale record: it goes, unless it is a hole above others.
  void abandon_stale_record(BlockId block);
  // Records that count no more and that nothing hangs on, to be erased, children before parents.
  std::vector<BlockHash> take_stale_records() { return std::exchange(stale_records_, {}); }
  bool has_stale_records() const { return !stale_records_.empty(); }

  // A block whose record may be erased to make room: the first by its rank (eviction.h) of those
  // that no running request names, else of those that have another copy. Its copy on disk is
  // forgotten already.
  struct DiskVictim {
    BlockHash hash;
    bool tail = false;
    uint64_t stored_bytes = 0;
  };
  std::optional<DiskVictim> take_disk_victim();
  // Leaves of one payer, the oldest first, until `bytes` are forgotten or none is left that may go.
  // Cost: linear in the payer's own blocks.
  std::vector<DiskVictim> take_victims_of(ScopeId payer, uint64_t bytes);
  // Leaves on disk that were last used before that time, at most so many. Cost: linear in them all.
  std::vector<DiskVictim> take_aged_victims(int64_t before_unix_us, size_t most);

  // Where the block stands among those that leave the disk, leaf or not; nothing for what requests,
  // pins or expectations keep there.
  std::optional<EvictionOrder> disk_order(BlockId block) const;
  // A block that is on disk goes with all that hangs on it, children before parents, or not at all:
  // it stays when any of that has a copy in RAM, is of another scope, or goes later than `up_to`.
  struct BranchSearch {
    size_t most_of_a_branch = 0;
    size_t looks_left = 0;                 // at blocks, in all calls
    std::unordered_set<BlockId> staying;   // found by calls before
  };
  std::vector<DiskVictim> take_branch(BlockId block, const EvictionOrder& up_to,
                                      BranchSearch& search);

  // Forgets every copy of a block, unless something hangs on it or keeps it.
  enum class Forgotten : uint8_t { kDone, kInUse, kPinned, kNeeded };
  Forgotten forget(BlockId block);
  // Copies in a tier that no lease holds and a lower tier has.
  void drop_tier(Tier tier);
  // By slot of the tier (kDevice, kHost): whose copy it holds; kNoBlock: nobody's.
  std::span<const BlockId> residents_of(Tier tier) const {
    return residents_[static_cast<size_t>(tier)];
  }

  size_t holes() const { return holes_; }
  struct Census {
    uint64_t stranded = 0;        // present, unreachable, and not below a hole
    uint64_t foreign_builds = 0;  // on disk, of another numerics build
    uint64_t tails_on_disk = 0;
    friend bool operator==(const Census&, const Census&) = default;
  };
  // Cost: constant; linear in the entries only while some block in no tier stands between others,
  // which none does but for a moment.
  Census census() const;
  // The same, counted anew. Cost: linear in the entries.
  Census full_census() const;
  uint64_t evicted() const { return evicted_; }
  // What index and notes hold, about.
  uint64_t memory_bytes() const { return index_.memory_bytes() + notes_.memory_bytes(); }
  std::vector<std::pair<BlockHash, TouchRecord>> take_touches();
  bool has_touches() const { return !touched_.empty(); }

 private:
  SlotPool& pool(Tier tier) { return tier == Tier::kDevice ? device_.slots() : host_.slots(); }
  std::optional<SlotLease> take_slot(Tier tier);
  std::optional<BlockId> oldest_leaf(Tier tier);
  std::optional<BlockId> spare_copy(Tier tier) const;
  std::vector<BlockId>& residents(Tier tier) { return residents_[static_cast<size_t>(tier)]; }
  bool may_lose(BlockId block, Tier tier, bool idle) const;
  bool may_leave_disk(BlockId block, bool idle) const;
  void count_disk(BlockId block);
  void uncount_disk(BlockId block);
  DiskVictim take_from_disk(BlockId block);
  bool find_branch(const EvictionOrder& up_to, BranchSearch& search,
                   std::vector<BlockId>& branch) const;
  void leave_ram(BlockId block);
  std::vector<BlockId> leaves_of(ScopeId payer) const;
  void clear_disk(BlockId block);
  bool unleased(BlockId block, Tier tier) const;
  bool is_last_copy(BlockId block, Tier tier) const;
  void forget_if_gone(BlockId block);
  void set_damaged(BlockId block, bool damaged);
  void retire(Tier tier, int32_t slot);

  ScopeBook& scopes_;
  RadixIndex index_;
  uint32_t block_tokens_;
  DevicePool& device_;
  HostTier& host_;
  const Clock& clock_;
  StableArray<BlockNotes> notes_;                  // by BlockId
  std::array<std::vector<BlockId>, 2> residents_;  // by slot of the device and of the host tier
  std::vector<std::pair<BlockId, BlockHash>> touched_;
  std::vector<BlockHash> stale_records_;
  std::unordered_map<BlockId, ScopeId> publishers_;  // of shared blocks
  const uint64_t opened_unix_us_;
  uint64_t use_counter_;  // goes on from the time of opening, so earlier uses have their own place
  size_t holes_ = 0;
  uint64_t evicted_ = 0;
  size_t disk_blocks_ = 0;           // on disk, tails not counted
  uint64_t disk_payload_bytes_ = 0;  // of those
  const uint64_t numerics_build_;
  uint64_t foreign_on_disk_ = 0;  // of another numerics build, tails counted
  uint64_t tails_on_disk_ = 0;
  bool loaded_ = false;
  bool disk_was_full_ = false;
  EvictionRanks ranks_;  // last: it watches the index
};

}  // namespace ember
