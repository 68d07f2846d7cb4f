// Restore executor: brings blocks up to device slots, layer group by layer group.
//
// Journey    disk_tier, host_tier -> [restore_executor] -> device_pool
// Owns       the fills that are queued or under way, in batches
// Invariant  a block is filled once, whoever waits for it; only proven bytes are copied up; a slot
//            stays leased until the last ticket that names it has ended
// Threads    engine thread only; reads and copies are tickets
// Not here   which blocks are restored (store/cache/chain.h)
//
// A batch is as many queued fills as host slots can be had for. Its reads run in parallel, group 0
// of every block first, and a block's next group when one of it has come, so the first layers are
// there long before the last. When a group of all blocks is proven, one copy ticket takes it up.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "store/cache/cache_context.h"

namespace ember {

struct Fill;

class FillWaiter {
 public:
  // Layer groups [first, last) of the fill are proven and in place.
  virtual void groups_arrived(const Fill& fill, uint32_t first, uint32_t last) = 0;
  // The fill is done or has failed; it is gone after this call.
  virtual void fill_settled(const Fill& fill) = 0;
  // Asked for with retry_later.
  virtual void retry() = 0;

 protected:
  ~FillWaiter() = default;
};

struct FillBatch;

// One block on its way to a device slot.
struct Fill {
  enum class State : uint8_t { kQueued, kRunning, kDone, kFailed };

  BlockId block = kNoBlock;
  Tier from = Tier::kDisk;
  uint32_t tokens = 0;  // rows to bring up: all of the block's, or those that agree
  bool whole = true;    // false: a private copy that is never the block's place on the device
  SlotLease target;     // on the device
  SlotLease source;     // device or host slot; for the disk the host slot that is read into
  int64_t deadline_us = 0;

  State state = State::kQueued;
  bool damaged = false;  // failed because what the disk holds is wrong
  bool settled = false;  // its waiters know
  bool cancelled = false;
  BlockIdentity identity;  // for the disk; written before the reads, then read by them
  BlockRecord record;
  std::vector<char> group_ready;
  uint32_t next_read = 1;  // group; the first is read with the record
  uint32_t reads = 0;      // tickets under way
  FillBatch* batch = nullptr;
  std::vector<FillWaiter*> waiters;
};

struct FillBatch {
  std::vector<Fill*> fills;  // in the order of their chains
  bool poisoned = false;
  uint32_t next_group = 0;  // to be copied up
  uint32_t arrived = 0;     // groups whose copies, and those of all before, have ended
  std::vector<char> copied;  // by group: its copy has ended
  uint32_t copies = 0;      // tickets under way, the poison's included
};

class RestoreExecutor {
 public:
  explicit RestoreExecutor(CacheContext& context) : context_(context) {}
  ~RestoreExecutor();

  // The fill of a whole block that is queued or running, or null.
  Fill* find(BlockId block) const;
  // Queues a fill (block, from, tokens, whole, target, source and deadline are set).
  Fill* add(std::unique_ptr<Fill> fill, FillWaiter* waiter);
  void join(Fill* fill, FillWaiter* waiter) { fill->waiters.push_back(waiter); }
  // The waiter is not interested any more; a queued fill that nobody wants is dropped.
  void leave(Fill* fill, FillWaiter* waiter);
  // Settles it as failed, at once or when the copies into its slot have ended.
  void cancel(Fill* fill);

  // Calls waiter->retry() in the next pump.
  void retry_later(FillWaiter* waiter) { retries_.push_back(waiter); }
  void forget_retry(FillWaiter* waiter) { std::erase(retries_, waiter); }

  // Starts what can start, ends what is too late, and tells waiters. To be called after anything.
  void pump();
  bool busy() const { return !fills_.empty(); }

 private:
  void start_batch();
  std::optional<SlotLease> host_slot();
  void read(Fill& fill, uint32_t group);
  void read_ended(Fill& fill, uint32_t group, const Status& status);
  void mark_group(Fill& fill, uint32_t group);
  void read_more(Fill& fill);
  void poison(FillBatch& batch);
  void advance(FillBatch& batch);
  bool copy_next_group(FillBatch& batch);
  void copies_ended(FillBatch& batch, const Status& status);
  void group_copied(FillBatch& batch, uint32_t group);
  void fail(Fill& fill);
  void settle(Fill& fill, Fill::State state);
  void expire();
  void deliver();
  void sweep();

  CacheContext& context_;
  std::vector<std::unique_ptr<Fill>> fills_;
  std::unordered_map<BlockId, Fill*> whole_;  // those that may be joined
  std::deque<Fill*> queue_;
  std::vector<std::unique_ptr<FillBatch>> batches_;
  std::vector<Fill*> settled_;  // their waiters are to be told
  std::vector<FillWaiter*> retries_;
  bool unswept_ = false;
  int64_t next_deadline_us_ = 0;  // not later than any fill's
};

}  // namespace ember
