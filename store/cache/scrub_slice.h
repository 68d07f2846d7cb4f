// Scrub slice: a few blocks read and proven in one go, on a worker.
//
// Journey    disk_tier -> [scrub_slice] -> scrubber
// Invariant  a block counts as damaged only when its bytes were wrong twice and it is still there;
//            what is wrong is in the quarantine before the slice ends
// Threads    one host task runs it; `stop` may be set by another thread at any time
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "prefix_index/block_hash.h"
#include "store/disk_tier.h"
#include "store/quarantine.h"

namespace ember {

struct ScrubSlice {
  // What to do: the suspects first, then the blocks after `reached`, until the budget is used up.
  std::vector<BlockHash> suspects;
  std::optional<BlockHash> reached;
  uint64_t budget_bytes = 0;
  std::atomic<bool> stop{false};

  // What came of it; `reached` is moved on.
  bool ended = false;  // there is no block after `reached`
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  uint64_t read_errors = 0;  // that prove nothing
  std::vector<BlockHash> damaged;
  // Records between these two cannot be listed: those that should be there are suspects.
  std::optional<std::pair<BlockHash, BlockHash>> gap;
};

// Errors: kIo and the like, when the records cannot be listed.
Status run_scrub_slice(DiskTier& disk, Quarantine* quarantine, const HashSecret& secret,
                       ScrubSlice& slice);

}  // namespace ember
