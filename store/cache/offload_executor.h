// Offload executor: does what the offload plan says: copies down, writes, makes room, flushes.
//
// Journey    device_pool -> [offload_executor] -> host_tier -> disk_tier, conversations
// Owns       the offload queue, what is accepted but not flushed, and who waits for durability
// Invariant  one task of ours on the write lane at a time, so a child's write is never handed over
//            before its parent's was accepted; a block counts as durable only after a flush
// Threads    engine thread only; copies and writes are tickets
// Not here   what to do next (store/cache/offload_plan.h), which block goes (block_ledger.h)
//
// The write lane is one: a flush that is due goes first, then the next slice of making room, then
// writes; what can wait for a quiet moment (aging, trimming the index, upkeep) goes last.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "store/cache/cache_context.h"
#include "store/cache/offload_queue.h"
#include "store/cache/write_budget.h"

namespace ember {

// Records in the store that no match can reach: of other namespaces, or with a parent that is gone.
// Counted, and the first to be evicted: the deepest first, so that no child loses its parent.
struct ForeignRecord {
  BlockHash hash;
  uint32_t position = 0;
  uint64_t stored_bytes = 0;
};

class OffloadExecutor {
 public:
  explicit OffloadExecutor(CacheContext& context)
      : context_(context),
        queue_(context),
        budget_(context.limits.write_bytes_per_day, context.clock.now_us()) {}

  // Records of the store that are not in the index.
  void add_foreign(std::span<const ForeignRecord> records);
  // It is in the index now.
  void forget_foreign(const BlockHash& hash) { foreign_hashes_.erase(hash); }
  size_t foreign_count() const { return foreign_hashes_.size(); }

  // Takes the block down in the background. `device` leases a slot with its rows.
  void add(BlockId block, SlotLease device);
  // A request needs a device slot that a waiting block holds: gives that block up.
  bool give_up_newest();
  void turn_ended() { turn_ended_us_ = context_.clock.now_us(); }
  // Completes when all that was added before is durable or has failed; no ticket if all is.
  // A tenant (kNoScope: none) hears of failures of its own blocks alone, and no details of them.
  Ticket sync(ScopeId tenant);
  // Erases tails and blocks; the index has forgotten them.
  void erase_tails(const std::vector<BlockHash>& tails);

  // The stored copy of this block is lost or wrong: one that the cache has elsewhere is queued
  // anew; else the block is a hole.
  void write_again(const BlockHash& hash);

  // Plans and starts whatever can be started. To be called after anything.
  void advance();
  // What only waits for the next day's budget is not under way.
  bool busy() const {
    return (!queue_.empty() && !budget_used_up_) || lane_busy_ || copies_ > 0 || coding_ > 0;
  }
  // The store has taken this block or tail, by a write that was not ours.
  void block_stored(BlockId block, const BlockRecord& record);
  void tail_stored(BlockId block, const BlockRecord& record);
  // A flush that was not ours has ended.
  void flushed_by_others(const Status& status);
  bool unflushed() const { return !unflushed_.empty(); }
  // Accepted by the disk, and not flushed yet.
  void each_unflushed(const std::function<void(const BlockHash&)>& visit) const {
    for (const Unflushed& block : unflushed_) visit(block.hash);
  }
  // From here on nothing waits for a better moment.
  void close() { closing_ = true; }
  void give_up_all();  // that is not under way

  size_t waiting() const { return queue_.size(); }
  uint64_t budget_left_bytes() const { return budget_.left_bytes(); }

 private:
  struct Unflushed {
    uint64_t order = 0;
    BlockHash hash;
    std::string scope;
    BlockHash parent;
    std::vector<TokenId> tokens;
  };
  struct SyncWaiter {
    Ticket ticket;
    uint64_t order = 0;
    ScopeId tenant = kNoScope;
    Status status;
  };

  bool run_step();
  void remove_finished();
  bool can_write() const { return context_.writable && context_.disk != nullptr; }
  bool sync_waits_for_flush() const;
  // Copies down.
  bool copy_down(const std::vector<size_t>& indices, bool must);
  bool free_a_host_slot();
  void copied_down(const std::vector<OffloadJob*>& jobs, const Status& status);
  // Writes.
  void code(const std::vector<size_t>& indices);
  void write(const std::vector<size_t>& indices);
  void written(const std::vector<OffloadJob*>& jobs);
  void accept(OffloadJob& job);
  void stored(BlockId block, const BlockRecord& record, uint64_t order);
  void refuse(OffloadJob& job);
  void give_up(OffloadJob* job, const Error& error);
  bool concerns(const SyncWaiter& waiter, const BlockHash& hash) const;
  // Quotas.
  bool keep_quotas(std::vector<size_t>& write);
  bool make_quota_room(ScopeId payer, uint64_t bytes);
  uint64_t most_bytes(const OffloadJob& job) const;
  bool erase_evicted();
  bool use_budget(OffloadView& view);
  void charge_budget();
  // Making room (offload_room.cc).
  struct Victims {
    std::vector<ForeignRecord> blocks;
    std::vector<BlockHash> tails;
    uint64_t bytes = 0;
    bool patient = false;  // more of them can go before an epoch is retired that is not worth it
    bool empty() const { return blocks.empty() && tails.empty(); }
  };
  bool make_room(OffloadJob& job);
  struct RoomWanted {
    uint64_t needed = 0;  // by the block that does not fit
    uint64_t wanted = 0;  // is evicted where that goes in order
    bool patient = true;
  };
  bool evict_in_order(const RoomWanted& room);
  // An epoch and the blocks that are given up with it (offload_retire.cc).
  void survey_epochs(const RoomWanted& room);
  void retire_one_of(const std::vector<DiskTier::EpochSample>& samples, const RoomWanted& room);
  void give_up_blocks(const std::vector<DiskTier::LiveBlock>& live, const EpochView& epoch,
                      const std::optional<EvictionOrder>& cold, const RoomWanted& room);
  std::optional<EvictionOrder> disk_order(const BlockHash& hash) const;
  bool add_victim(Victims& victims);
  void add_victim(Victims& victims, const BlockLedger::DiskVictim& victim);
  // Then asks the tier for room for `needed` bytes (0: for none).
  void erase_victims(Victims victims, uint64_t needed);
  std::optional<ForeignRecord> take_foreign();
  void remember_evicted(std::span<const ForeignRecord> blocks, bool go_first);
  std::optional<ForeignRecord> take_evicted();
  void add_evicted(Victims& victims);  // all of them
  bool drop_oldest_tail();
  void reclaim();
  void upkeep();
  bool trim_index();
  bool drop_aged();
  void use_quiet_lane();
  // Flushes.
  void flush();
  void flushed(size_t count, const Status& status);
  void tell_flush_failure(const Status& status);
  void settle_syncs();
  void answer(const SyncWaiter& waiter);
  bool waits_for_flush(const SyncWaiter& waiter) const;
  void forget_tail(const BlockHash& hash);
  void supersede(const std::string& scope, const BlockHash& parent, TokenSpan tokens);
  void on_write_lane(HostTask task, TicketRouter::Then then);
  // Trouble.
  void watch_lane();
  void end_syncs(const Error& error);

  CacheContext& context_;
  OffloadQueue queue_;
  std::vector<ForeignRecord> foreign_;  // the deepest last, once sorted
  bool foreign_sorted_ = true;
  std::unordered_set<BlockHash> foreign_hashes_;  // of both, unless written anew since
  std::vector<Unflushed> unflushed_;
  int64_t oldest_unflushed_us_ = 0;
  uint32_t flush_attempts_ = 0;
  int64_t flush_not_before_us_ = 0;
  int64_t turn_ended_us_ = -1;
  std::vector<SyncWaiter> syncs_;
  std::vector<BlockHash> doomed_tails_;  // to be erased when the lane is free
  // Gone from the index, and still to be erased: in this order, and before anything else that is
  // evicted, so that no parent leaves the disk before its child. They count as foreign.
  std::deque<ForeignRecord> evicted_;
  bool erase_due_ = false;
  uint32_t copies_ = 0;                  // tickets under way
  uint32_t coding_ = 0;                  // the same
  uint64_t coded_bytes_ = 0;             // payloads in RAM
  WriteBudget budget_;
  uint64_t charged_bytes_ = 0;    // of what the disk tier has written since opening
  bool budget_used_up_ = false;
  uint64_t reclaim_needed_ = 0;   // room that the tier is making, slice by slice; 0: none
  bool upkeep_due_ = false;
  size_t most_indexed_ = 0;       // entries; 0: the index has not met its share yet
  bool trimming_ = false;         // down to a little less than that
  int64_t next_aging_us_ = 0;
  bool lane_busy_ = false;
  bool lane_wedged_ = false;   // its task has been away for longer than we are patient
  int64_t lane_since_us_ = 0;  // when it was handed over
  bool closing_ = false;
  bool hopeless_ = false;  // closing has lasted too long: "busy" counts as a refusal
};

}  // namespace ember
