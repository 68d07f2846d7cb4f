// Plain replay: a trace through one tier as REPLAY says it, over sets and maps: the reference that
// the block cache's replay and the simulation are compared with. Answers, which are not looked up,
// it knows under leaf_lru alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "prefix_index/duel.h"
#include "store/replay/trace.h"
#include "tests/prefix_index/plain_shadows.h"

namespace ember::testing {

class PlainReplay {
 public:
  PlainReplay(const replay::Trace& trace, size_t capacity, EvictionPolicy policy)
      : trace_(trace),
        capacity_(capacity),
        policy_(policy),
        s3_leads_(policy == EvictionPolicy::kS3Fifo),
        lru_{capacity},
        s3_{capacity},
        blocks_(trace.blocks()) {}

  // Hits of the whole trace.
  uint64_t run() {
    uint64_t hits = 0;
    for (const replay::Request& request : trace_.requests) {
      std::vector<replay::BlockNumber> chain;
      trace_.chain(request, chain);
      if (policy_ != EvictionPolicy::kLeafLru) run_shadows(chain);
      hits += std::min<uint64_t>(run_request(chain), request.looked_up);
    }
    return hits;
  }
  uint64_t switches() const { return switches_; }

 private:
  struct Block {
    bool present = false;
    uint64_t use = 0;
    size_t depth = 0;
    size_t children = 0;  // present ones
    replay::BlockNumber parent = 0;
  };
  // The oldest first, of one time the deepest.
  using Leaf = std::pair<std::pair<uint64_t, int64_t>, replay::BlockNumber>;

  Leaf leaf(replay::BlockNumber block) const {
    return {{blocks_[block].use, -static_cast<int64_t>(blocks_[block].depth)}, block};
  }

  void run_shadows(const std::vector<replay::BlockNumber>& chain) {
    std::vector<ShadowId> ids;
    for (replay::BlockNumber block : chain) ids.push_back(block + 1);
    const auto lru_hits = static_cast<double>(lru_.request(ids));
    const auto s3_hits = static_cast<double>(s3_.request(ids));
    lru_score_ = lru_score_ * 0.995 + lru_hits;
    s3_score_ = s3_score_ * 0.995 + s3_hits;
    if (policy_ != EvictionPolicy::kAuto) return;
    const bool change = s3_leads_ ? lru_score_ > 1.01 * s3_score_ : s3_score_ > 1.01 * lru_score_;
    if (!change) return;
    s3_leads_ = !s3_leads_;
    ++switches_;
  }

  bool spared(replay::BlockNumber block) const {
    if (policy_ == EvictionPolicy::kLeafLru) return false;
    return s3_leads_ ? s3_.holds(block + 1) : lru_.holds(block + 1);
  }

  bool make_room() {
    if (present_ < capacity_) return true;
    const auto idle = [&](const Leaf& candidate) { return candidate.first.first < now_; };
    auto victim = std::find_if(leaves_.begin(), leaves_.end(), [&](const Leaf& candidate) {
      return idle(candidate) && !spared(candidate.second);
    });
    if (victim == leaves_.end()) victim = std::find_if(leaves_.begin(), leaves_.end(), idle);
    if (victim == leaves_.end()) return false;
    const replay::BlockNumber block = victim->second;
    leaves_.erase(victim);
    blocks_[block].present = false;
    --present_;
    if (blocks_[block].depth == 0) return true;
    Block& parent = blocks_[blocks_[block].parent];
    if (--parent.children == 0) leaves_.insert(leaf(blocks_[block].parent));
    return true;
  }

  uint64_t run_request(const std::vector<replay::BlockNumber>& chain) {
    ++now_;
    size_t hits = 0;
    while (hits < chain.size() && blocks_[chain[hits]].present) ++hits;
    for (size_t i = 0; i < hits; ++i) {
      const bool was_leaf = leaves_.erase(leaf(chain[i])) > 0;
      blocks_[chain[i]].use = now_;
      if (was_leaf) leaves_.insert(leaf(chain[i]));
    }
    for (size_t i = hits; i < chain.size() && make_room(); ++i) {
      blocks_[chain[i]] = {true, now_, i, 0, i == 0 ? 0 : chain[i - 1]};
      ++present_;
      leaves_.insert(leaf(chain[i]));
      if (i == 0) continue;
      if (blocks_[chain[i - 1]].children++ == 0) leaves_.erase(leaf(chain[i - 1]));
    }
    return hits;
  }

  const replay::Trace& trace_;
  size_t capacity_;
  EvictionPolicy policy_;
  bool s3_leads_;
  PlainLeafLru lru_;
  PlainS3Fifo s3_;
  double lru_score_ = 0;
  double s3_score_ = 0;
  uint64_t switches_ = 0;
  std::vector<Block> blocks_;
  std::set<Leaf> leaves_;
  size_t present_ = 0;
  uint64_t now_ = 0;
};

}  // namespace ember::testing
