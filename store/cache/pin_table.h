// Pin table: blocks that stay for a stated time: pinned by a client, or expected to be used soon.
//
// Journey    BlockCache::pin, hint -> [pin_table] -> eviction_ranks
// Owns       a time of expiry for each of these blocks
// Invariant  every pin ends by the clock; a block has one, the firm before the soft
// Threads    engine thread only; pure (the time is an argument)
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "prefix_index/eviction.h"

namespace ember {

class PinTable {
 public:
  enum class Kind : uint8_t { kNone, kExpected, kPinned };

  // A later end and the firmer kind win.
  void set(BlockId block, Kind kind, int64_t until_us) {
    Pin pin{kind, until_us};
    if (const auto found = pins_.find(block); found != pins_.end()) {
      if (found->second.kind > kind) return;
      if (found->second.kind == kind && found->second.until_us >= until_us) return;
      erase(block);
    }
    pins_.emplace(block, pin);
    by_end_.emplace(until_us, block);
    if (kind == Kind::kPinned) ++pinned_;
  }
  void erase(BlockId block) {
    const auto found = pins_.find(block);
    if (found == pins_.end()) return;
    if (found->second.kind == Kind::kPinned) --pinned_;
    by_end_.erase({found->second.until_us, block});
    pins_.erase(found);
  }
  Kind kind(BlockId block) const {
    if (pins_.empty()) return Kind::kNone;
    const auto found = pins_.find(block);
    return found == pins_.end() ? Kind::kNone : found->second.kind;
  }
  // By the clock; 0: it is not pinned.
  int64_t pinned_until_us(BlockId block) const {
    const auto found = pins_.find(block);
    const bool pinned = found != pins_.end() && found->second.kind == Kind::kPinned;
    return pinned ? found->second.until_us : 0;
  }
  // Ends what is due; returns those blocks.
  std::vector<BlockId> expire(int64_t now_us) {
    std::vector<BlockId> ended;
    while (!by_end_.empty() && by_end_.begin()->first <= now_us) {
      ended.push_back(by_end_.begin()->second);
      if (kind(ended.back()) == Kind::kPinned) ++expired_;
      erase(ended.back());
    }
    return ended;
  }

  size_t size() const { return pins_.size(); }
  size_t pinned() const { return pinned_; }
  uint64_t expired() const { return expired_; }  // of those that were pinned

 private:
  struct Pin {
    Kind kind = Kind::kNone;
    int64_t until_us = 0;
  };
  std::unordered_map<BlockId, Pin> pins_;
  std::set<std::pair<int64_t, BlockId>> by_end_;
  size_t pinned_ = 0;
  uint64_t expired_ = 0;
};

}  // namespace ember
