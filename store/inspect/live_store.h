// Live store: the store that this process has open, as others look at it: records from the disk,
// places and what is not stored yet from the running cache.
//
// Journey    disk_tier, conversations, block_cache (on the engine thread) -> [live_store] ->
//            store_reader
// Invariant  the engine thread is asked for a page at a time and never for all blocks; nothing is
//            older than the call; where it does not answer, that is the error
// Threads    any but the engine's, one caller at a time for each reader
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "store/block_cache.h"
#include "store/store_reader.h"

namespace ember {

// Runs a closure on the engine thread and returns when it has run. Errors: why it did not.
using EngineCall = std::function<Status(const std::function<void()>&)>;

// `cache` outlives it. Errors: kIo where the cache has no usable store.
Result<std::unique_ptr<StoreReader>> open_live_store(const BlockCache& cache, EngineCall call);

}  // namespace ember
