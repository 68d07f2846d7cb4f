// Host read: one block from the disk into a host slot, ahead of any restore.
//
// Journey    disk_tier -> [host_read] -> host_tier
// Invariant  a block is published only when all its bytes are proven; what is proven wrong is
//            reported as damaged
// Threads    engine thread only; the read is a host task of the read lane
// Not here   which blocks and when (store/cache/warm_up.h, store/cache/prefetcher.h)
#pragma once

#include <functional>

#include "store/cache/cache_context.h"

namespace ember {

// Whether it is on the disk only, whole and of our numerics build.
bool can_be_read_ahead(const CacheContext& context, BlockId block);

// Reads it into the slot. `ended` runs on the engine thread: `published` when the slot is the
// block's place in the host tier; the slot's lease then goes unless it is shared.
using HostReadEnded = std::function<void(BlockId block, bool published, const SlotLease& slot)>;
void read_ahead(CacheContext& context, BlockId block, SlotLease slot, HostReadEnded ended);

}  // namespace ember
