// Live editor: changes to the store that this process has open: the index forgets on the engine
// thread, a page at a time; the store is changed in turns of the write lane.
//
// Journey    store_editor -> [live_editor] -> live_edits (on the engine thread), disk_tier,
//            conversations (on the write lane)
// Invariant  what the engine thread is asked for takes it a page of items at most; a task that was
//            handed over is waited for, whoever is gone by then
// Threads    any but the engine's, one caller at a time for each editor
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "kernels/device.h"
#include "store/block_cache.h"
#include "store/inspect/live_store.h"
#include "store/store_editor.h"

namespace ember {

struct LiveEditorCalls {
  EngineCall call;
  // Begins something on the engine thread, and waits for its ticket (zero: nothing to wait for).
  // Errors: the ticket's; kCancelled when the process ends or whoever asked has gone.
  std::function<Status(const std::function<Ticket()>& begin)> wait_for;
  std::function<bool()> cancelled;
};

// Runs `work` in a turn of the write lane and waits for its end, whoever is gone by then: it works
// on what its caller has. Errors: the work's; those of `calls.call`.
Status run_on_write_lane(BlockCache& cache, const LiveEditorCalls& calls, const HostTask& work);

// `cache` outlives it. Errors: kIo where the cache has no usable store.
Result<std::unique_ptr<StoreEditor>> open_live_editor(BlockCache& cache, LiveEditorCalls calls);

}  // namespace ember
