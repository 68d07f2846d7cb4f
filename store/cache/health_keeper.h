// Health keeper: whether the store works, why not, and since when.
//
// Journey    opening, offload, disk_tier -> [health_keeper] -> BlockCache::health
// Invariant  off and unusable are decided at opening and stay; a store that is open is degraded for
//            as long as any topic has trouble, and each topic ends only its own
// Threads    engine thread only
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "base/clock.h"
#include "store/block_cache.h"

namespace ember {

enum class HealthTopic : uint8_t { kOpening, kWriting, kLane, kDisk };
inline constexpr size_t kHealthTopics = 4;

class HealthKeeper {
 public:
  explicit HealthKeeper(const Clock& clock) : clock_(clock) {}

  // kOk (degraded if there is a reason), kUnusable or kOff.
  void open_as(StoreState state, const std::string& reason) {
    opened_as_ = state;
    troubles_ = {};
    troubles_[static_cast<size_t>(HealthTopic::kOpening)] = reason;
    recompute();
  }
  // Empty: this topic is well.
  void tell(HealthTopic topic, const std::string& trouble) {
    std::string& told = troubles_[static_cast<size_t>(topic)];
    if (told == trouble) return;
    told = trouble;
    recompute();
  }
  const StoreHealth& now() const { return health_; }

 private:
  void recompute() {
    std::string reason;
    for (const std::string& trouble : troubles_) {
      if (trouble.empty() || reason.find(trouble) != std::string::npos) continue;
      reason += reason.empty() ? trouble : "; " + trouble;
    }
    StoreState state = opened_as_;
    if (state == StoreState::kOk && !reason.empty()) state = StoreState::kDegraded;
    if (state != health_.state || health_.since_unix_us == 0) {
      health_.since_unix_us = clock_.unix_us();
    }
    health_.state = state;
    health_.reason = reason;
  }

  const Clock& clock_;
  StoreState opened_as_ = StoreState::kOff;
  std::array<std::string, kHealthTopics> troubles_;
  StoreHealth health_;
};

}  // namespace ember
