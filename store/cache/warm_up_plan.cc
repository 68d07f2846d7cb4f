// Scores of blocks by decaying use.
#include "store/cache/warm_up_plan.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace ember {

double WarmUpPlan::now(const Score& score) const {
  return score.value * std::exp2(-static_cast<double>(requests_ - score.at) / kHalfLifeRequests);
}

void WarmUpPlan::add(const AccessEntry& entry) {
  if (most_blocks_ == 0) return;
  ++requests_;
  // Of a longer chain the front alone could come up.
  const size_t count = std::min(entry.blocks.size(), most_blocks_);
  for (size_t i = 0; i < count; ++i) {
    Score& score = scores_[entry.blocks[i]];
    score = {now(score) + 1, requests_, static_cast<uint32_t>(i)};
  }
  if (scores_.size() > kKnownForEachWanted * most_blocks_ + kMostAccessBlocks) forget_least();
}

void WarmUpPlan::forget_least() {
  const std::vector<BlockHash> best = blocks();
  std::unordered_map<BlockHash, Score> kept;
  for (const BlockHash& hash : best) kept.emplace(hash, scores_.at(hash));
  scores_ = std::move(kept);
}

std::vector<BlockHash> WarmUpPlan::blocks() const {
  struct Ranked {
    double score = 0;
    uint32_t position = 0;
    BlockHash hash;
  };
  std::vector<Ranked> ranked;
  ranked.reserve(scores_.size());
  for (const auto& [hash, score] : scores_) ranked.push_back({now(score), score.position, hash});
  // Equal scores are those of one chain, mostly: from its root on.
  const auto before = [](const Ranked& a, const Ranked& b) {
    return std::tuple(-a.score, a.position, a.hash) < std::tuple(-b.score, b.position, b.hash);
  };
  std::sort(ranked.begin(), ranked.end(), before);
  if (ranked.size() > most_blocks_) ranked.resize(most_blocks_);
  std::vector<BlockHash> hashes;
  hashes.reserve(ranked.size());
  for (const Ranked& one : ranked) hashes.push_back(one.hash);
  return hashes;
}

}  // namespace ember
