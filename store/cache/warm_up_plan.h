// Warm-up plan: which blocks a restarted process will most likely be asked for first.
//
// Journey    access_log -> [warm_up_plan] -> warm_up
// Owns       a score for each block that the latest requests of an earlier process used
// Invariant  a block comes after those before it in its chain; at most the blocks asked for
// Threads    any; pure
// Not here   what of it is still on the disk, and the reading (store/cache/warm_up.h)
//
// A block's score is the sum over the requests that used it of a half to the power of how many
// requests ago that was, in half-lives: often and lately both count. Whoever used a block used all
// before it, so scores never rise along a chain, and the best ones are closed towards the root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "store/access_log.h"

namespace ember {

class WarmUpPlan {
 public:
  static constexpr double kHalfLifeRequests = 256;

  // `most_blocks`: that there will be room for.
  explicit WarmUpPlan(size_t most_blocks) : most_blocks_(most_blocks) {}

  // A request, the oldest first.
  void add(const AccessEntry& entry);
  // The blocks in the order in which they should come up.
  std::vector<BlockHash> blocks() const;
  size_t known() const { return scores_.size(); }

 private:
  // Of blocks that are known, those with the lowest scores go when there are so many more.
  static constexpr size_t kKnownForEachWanted = 4;
  struct Score {
    double value = 0;       // as of request `at`
    uint64_t at = 0;
    uint32_t position = 0;  // in its chain
  };
  double now(const Score& score) const;
  void forget_least();

  size_t most_blocks_;
  uint64_t requests_ = 0;
  std::unordered_map<BlockHash, Score> scores_;
};

}  // namespace ember
