// Prefetcher: brings the blocks of waiting requests from the disk to host slots, and keeps them
// there until their requests have device slots.
//
// Journey    disk_tier -> [prefetcher] -> host_tier, before any device slot is taken
// Owns       what each waiting request has asked for, and its leases of host slots
// Invariant  all together lease at most half of the host slots; no read begins while a restore is
//            under way: what waits never slows what runs
// Threads    engine thread only; the reads are host tasks of the read lane
// Not here   the restore itself (store/cache/restore_executor.h), which finds the blocks in RAM
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "store/block_cache.h"
#include "store/cache/cache_context.h"

namespace ember {

class Prefetcher {
 public:
  explicit Prefetcher(CacheContext& context) : context_(context) {}
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher();

  // Blocks in the order of their prefix. The returned handle must go before the prefetcher does.
  std::unique_ptr<Prefetch> begin(std::vector<BlockHash> blocks);
  // Starts reads that may start. To be called after anything.
  void advance(bool restoring);
  bool reading() const { return reads_under_way_ > 0; }
  uint64_t read_blocks() const { return read_blocks_; }
  uint64_t slots() const { return leases_; }
  // Those whose reads have ended and that nobody else leases. Cost: linear in the host slots.
  size_t kept_slots() const;

 private:
  static constexpr uint32_t kReadsAtOnce = 8;
  struct Job;
  class Handle;

  size_t most_leases() const { return context_.host_tier.slots().size() / 2; }
  bool advance_one(const std::shared_ptr<Job>& job);
  void drop(Job* job);

  CacheContext& context_;
  std::vector<std::shared_ptr<Job>> jobs_;  // oldest first
  size_t leases_ = 0;           // of all jobs, reads under way included
  uint32_t reads_under_way_ = 0;
  uint64_t read_blocks_ = 0;
};

}  // namespace ember
