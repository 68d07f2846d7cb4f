// Live intake: takes records into the store that this process has open; they hit at once.
//
// Journey    import -> [live_intake] -> live_edits (on the engine thread, and the write lane)
// Owns       a batch of blocks on their way
// Invariant  the running cache keeps its rules: a child is written after its parent, what is known
//            stays as it is, nothing is evicted for what comes
// Threads    any but the engine's, one caller at a time
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/edit/live_editor.h"
#include "store/record_intake.h"

namespace ember {

// `cache` outlives it; `is_open`: whether somebody talks in that conversation now.
// Errors: kIo where the cache has no usable store; kBusy while it still reads the store.
Result<std::unique_ptr<RecordIntake>> open_live_intake(
    BlockCache& cache, LiveEditorCalls calls,
    std::function<bool(const std::string& conversation)> is_open);

}  // namespace ember
