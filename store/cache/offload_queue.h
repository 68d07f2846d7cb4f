// Offload queue: the blocks on their way down, in the order of their commits.
//
// Journey    device_pool -> [offload_queue] -> host_tier -> write lane
// Owns       a lease for each block's bytes until the disk has accepted them
// Invariant  a block is in the queue once; its ancestors that are not stored are before it
// Threads    engine thread only; a task has the items that it codes or writes to itself
// Not here   what happens next (store/cache/offload_plan.h), doing it (offload_executor.h)
#pragma once

#include <deque>
#include <memory>
#include <unordered_set>
#include <vector>

#include "store/cache/cache_context.h"
#include "store/cache/offload_plan.h"

namespace ember {

struct OffloadJob {
  uint64_t order = 0;
  BlockId block = kNoBlock;
  BlockId parent = kNoBlock;
  OffloadStage stage = OffloadStage::kQueued;
  SlotLease device;
  SlotLease host;
  BlockIdentity identity;
  uint32_t attempts = 0;   // refused writes
  uint32_t evictions = 0;  // rounds of making room for it
  int64_t not_before_us = 0;
  int64_t refused_since_us = -1;
  // A task's while it is kCoding or kWriting.
  CodedBlock coded;
  bool tried = false;
  Status result;

  bool is_tail() const { return identity.tail; }
};

class OffloadQueue {
 public:
  explicit OffloadQueue(CacheContext& context) : context_(context) {}
  ~OffloadQueue();

  // Adds the block, and before it those ancestors that are neither stored nor queued and have a
  // copy to read. `device` leases a copy of the block. False: it was queued already.
  bool add(BlockId block, SlotLease device);
  // The newest block in that stage, to make room for another; nothing if there is none.
  OffloadJob* newest_in(OffloadStage stage);
  void remove(OffloadJob* job);

  // Queues the job's block anew, behind what is queued now.
  void put_back(OffloadJob* job);
  bool contains(BlockId block) const { return queued_.contains(block); }

  bool empty() const { return jobs_.empty(); }
  size_t size() const { return jobs_.size(); }
  OffloadJob& at(size_t index) { return *jobs_[index]; }
  uint64_t last_order() const { return next_order_ - 1; }
  // The order of the oldest job, or the next one to be given.
  uint64_t first_order() const { return jobs_.empty() ? next_order_ : jobs_.front()->order; }
  std::vector<OffloadItem> items() const;

 private:
  bool stored(BlockId block) const { return context_.ledger.entry(block).in(Tier::kDisk); }
  void push(BlockId block, SlotLease device);

  CacheContext& context_;
  std::deque<std::unique_ptr<OffloadJob>> jobs_;
  std::unordered_set<BlockId> queued_;
  uint64_t next_order_ = 1;
};

}  // namespace ember
