// S3-FIFO: a shadow directory that says what three FIFO queues of this capacity would hold.
//
// Journey    requests -> [s3_fifo] -> duel
// Owns       the ids of at most `capacity` blocks, and as many of its ghosts as its main queue has
// Invariant  a block is in the small queue (a tenth), in the main queue, or a ghost (known, not
//            held)
// Threads    engine thread only; pure
// Source     Yang et al., FIFO queues are all you need for cache eviction, SOSP 2023
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "prefix_index/shadow_table.h"

namespace ember {

class S3FifoShadow {
 public:
  explicit S3FifoShadow(size_t capacity) : capacity_(capacity) {}

  // As LeafLruShadow's. There is no leaf rule here: a hit still counts leading blocks alone.
  size_t request(std::span<const ShadowId> chain, std::vector<ShadowId>* changed);
  void extend(ShadowId block, std::vector<ShadowId>* changed);
  // At reopening, the latest use first: one with hits had earned its place in the main queue.
  void recall(ShadowId block, bool had_hits);
  // At reopening: a member of one of the queues, or a ghost; older than all of that queue.
  void recall(const ShadowMark& mark);
  // All queues one after the other, each from its oldest on (shadow_table.h).
  static constexpr size_t kQueueCount = 3;
  void begin_walk(size_t queue) { table_.begin_walk(queue); }
  std::optional<ShadowMark> walk() {
    const Table::Ref ref = table_.walk();
    if (ref == Table::kNone) return std::nullopt;
    return ShadowMark{table_.at(ref).id, table_.at(ref).queue, table_.at(ref).count};
  }
  void set_capacity(size_t capacity, std::vector<ShadowId>* changed);

  void prefetch(ShadowId block) const { table_.prefetch(block); }
  bool holds(ShadowId block) const {
    const Table::Ref known = table_.find(block);
    return known != Table::kNone && table_.at(known).queue != kGhost;
  }
  size_t size() const { return table_.size(kSmall) + table_.size(kMain); }
  size_t ghosts() const { return table_.size(kGhost); }
  size_t memory_bytes() const { return table_.memory_bytes(); }

 private:
  enum Queue : size_t { kSmall, kMain, kGhost };
  using Table = ShadowTable<kQueueCount>;

  size_t small_capacity() const { return (capacity_ + 5) / 10; }
  void enter(ShadowId block, std::vector<ShadowId>* changed);
  void evict_one(std::vector<ShadowId>* changed);
  size_t ghost_capacity() const {
    return capacity_ - std::min(capacity_, small_capacity());
  }
  void trim_ghosts();

  size_t capacity_;
  Table table_;
};

}  // namespace ember
