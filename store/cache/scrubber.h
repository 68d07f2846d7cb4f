// Scrubber: proves what is stored, in the background, before a request meets the damage.
//
// Journey    disk_tier -> [scrubber] -> block_cache (holes, healing), quarantine
// Owns       the slice that is under way and the mark of how far the pass has come
// Invariant  at most its rate of bytes a second; nothing is read while blocks are being restored,
//            and a slice under way ends early when one begins; a pass goes over every block in the
//            order of hashes, across restarts
// Threads    engine thread only; slices are host tasks of the read lane
// Not here   the proof itself (store/cache/scrub_slice.h); tails, which resuming reads anyway
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/cache/cache_context.h"
#include "store/cache/scrub_mark.h"
#include "store/cache/scrub_slice.h"

namespace ember {

class Scrubber {
 public:
  Scrubber(CacheContext& context, const HashSecret& secret);

  // Where the mark is kept; without it each opening begins a pass.
  void remember_in(const std::string& path);
  // Nothing is scrubbed before this, nor with a rate of 0.
  void set_pace(uint64_t bytes_per_second, int64_t interval_us);

  // Starts a slice if one is due. `restoring`: not now.
  void advance(bool restoring);
  // A request wants the disk: the slice under way ends after the group that it is reading.
  void yield();
  // No more slices; writes the mark.
  void close();

  void add_to(BlockCacheStats& stats) const;

 private:
  bool due(int64_t now_us);
  void start_slice();
  void slice_ended(const Status& status);
  void suspect(const BlockHash& from, const BlockHash& to);
  void remember();

  CacheContext& context_;
  const HashSecret secret_;
  std::string mark_path_;
  ScrubMark mark_;
  uint64_t rate_ = 0;
  int64_t interval_us_ = 0;
  int64_t allowance_ = 0;  // bytes that may be read now; a large block leaves a debt
  int64_t allowed_until_us_ = 0;
  int64_t quiet_from_us_ = 0;  // no slice before
  uint64_t unmarked_bytes_ = 0;
  std::shared_ptr<ScrubSlice> slice_;  // under way
  std::vector<BlockHash> suspects_;
  uint64_t blocks_ = 0;
  uint64_t bytes_ = 0;
  uint64_t damaged_ = 0;
};

}  // namespace ember
