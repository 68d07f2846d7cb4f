// Dedup check: whether a block that was computed twice came out the same.
//
// Journey    block_cache (commit of a known block) -> [dedup_check] -> counters
// Owns       the slots of the one comparison that is under way
// Invariant  costs a copy and a hash on workers, never a wait and never an eviction: where a
//            comparison is under way already, or no host slot is free, a block is not compared
// Threads    engine thread only; copy and hash are tickets
// Not here   what follows from a difference: nothing, the stored block stays; the counter is read.
//            A record that is proven wrong on the way is damage like any other (block_cache)
#pragma once

#include "store/cache/cache_context.h"

namespace ember {

class DedupCheck {
 public:
  explicit DedupCheck(CacheContext& context) : context_(context) {}

  // `device` leases a slot with all rows of `block`, computed now.
  void compare(BlockId block, SlotLease device);
  bool busy() const { return static_cast<bool>(host_); }

 private:
  void hash_against_record(const BlockIdentity& identity);
  void end();

  CacheContext& context_;
  BlockId block_ = kNoBlock;  // held while a comparison is under way
  SlotLease device_;
  SlotLease host_;  // held while a comparison is under way
};

}  // namespace ember
