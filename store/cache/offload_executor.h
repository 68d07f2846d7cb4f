// Offload executor: does what the offload plan says: copies down, writes, makes room, flushes.
//
// Journey    device_pool -> [offload_executor] -> host_tier -> disk_tier, conversations
// Owns       the offload queue, what is accepted but not flushed, and who waits for durability
// Invariant  one task of ours on the write lane at a time, so a child's write is never handed over
//            before its parent's was accepted; a block counts as durable only after a flush
// Threads    engine thread only; copies and writes are tickets
// Not here   what to do next (store/cache/offload_plan.h), which block goes (block_ledger.h)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "store/cache/cache_context.h"
#include "store/cache/offload_queue.h"

namespace ember {

// Records in the store that no match can reach: of other namespaces, or with a parent that is gone.
// Counted, and the first to be evicted: the deepest first, so that no child loses its parent. What
// was evicted but could not be erased comes back here.
struct ForeignRecord {
  BlockHash hash;
  uint32_t position = 0;
  uint64_t stored_bytes = 0;
};

class OffloadExecutor {
 public:
  explicit OffloadExecutor(CacheContext& context) : context_(context), queue_(context) {}

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
  bool busy() const { return !queue_.empty() || lane_busy_ || copies_ > 0; }
  bool unflushed() const { return !unflushed_.empty(); }
  // From here on nothing waits for a better moment.
  void close() { closing_ = true; }
  void give_up_all();  // that is not under way

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
  bool copy_down(const std::vector<size_t>& indices);
  void copied_down(const std::vector<OffloadJob*>& jobs, const Status& status);
  // Writes.
  void write(const std::vector<size_t>& indices);
  void written(const std::vector<OffloadJob*>& jobs);
  void accept(OffloadJob& job);
  void refuse(OffloadJob& job);
  void give_up(OffloadJob* job, const Error& error);
  bool concerns(const SyncWaiter& waiter, const BlockHash& hash) const;
  // Quotas.
  bool keep_quotas(std::vector<size_t>& write);
  bool make_quota_room(ScopeId payer, uint64_t bytes);
  uint64_t most_bytes(const OffloadJob& job) const;
  void doom_stale_records();
  void erase_blocks(const std::vector<ForeignRecord>& blocks);
  bool make_room(OffloadJob& job);
  std::optional<ForeignRecord> take_foreign();
  void remember_unerased(std::span<const ForeignRecord> blocks);
  bool drop_oldest_tail();
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
  std::unordered_set<BlockHash> foreign_hashes_;  // those of `foreign_` not written anew since
  std::vector<Unflushed> unflushed_;
  int64_t oldest_unflushed_us_ = 0;
  uint32_t flush_attempts_ = 0;
  int64_t flush_not_before_us_ = 0;
  int64_t turn_ended_us_ = -1;
  std::vector<SyncWaiter> syncs_;
  std::vector<BlockHash> doomed_tails_;  // to be erased when the lane is free
  std::vector<ForeignRecord> doomed_blocks_;
  uint32_t copies_ = 0;                  // tickets under way
  bool lane_busy_ = false;
  bool lane_wedged_ = false;   // its task has been away for longer than we are patient
  int64_t lane_since_us_ = 0;  // when it was handed over
  bool closing_ = false;
  bool hopeless_ = false;  // closing has lasted too long: "busy" counts as a refusal
};

}  // namespace ember
