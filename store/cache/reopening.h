// Reopening: yesterday's index, rebuilt from the records that the store lists.
//
// Journey    disk_tier, conversations -> [reopening] -> block_ledger, tail_ledger
// Invariant  a block enters only under its parent, and only if its hash follows from the secret,
//            its parent and its tokens; recency and hits come back from the touch records
// Threads    engine thread, once, before anything else
#pragma once

#include <vector>

#include "prefix_index/block_hash.h"
#include "store/cache/cache_context.h"
#include "store/cache/offload_executor.h"

namespace ember {

struct Reopened {
  std::vector<ForeignRecord> foreign;   // the deepest last; unreachable ones included
  std::vector<BlockHash> doomed_tails;  // damaged, or without a parent
  uint64_t unreadable = 0;              // records that are damaged
  uint64_t unreachable = 0;             // of `foreign`: ours, but the parent is missing
};

// Errors: kCorruption or kIo when the store's metadata cannot be listed.
Result<Reopened> reopen(CacheContext& context, const BlockHasher& hasher);

}  // namespace ember
