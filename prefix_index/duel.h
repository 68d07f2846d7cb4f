// Duel: two shadow directories of ids, each scored by its recent hits; the leader spares its own.
//
// Journey    requests -> [duel] -> ranks of blocks (prefix_index/eviction.h)
// Owns       a leaf-LRU and an S3-FIFO shadow of one tier's capacity
// Invariant  score = score * 0.995 + hits of the request; the lead changes hands only when the
//            other's score exceeds 1.01 times the leader's
// Threads    engine thread only; pure
// Not here   the real victim: the oldest leaf that the leader does not hold, else the oldest leaf
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "prefix_index/leaf_lru.h"
#include "prefix_index/s3_fifo.h"

namespace ember {

enum class EvictionPolicy : uint8_t {
  kAuto,     // the duel
  kLeafLru,  // the oldest leaf; no shadow is kept
  kS3Fifo,   // the oldest leaf that an S3-FIFO of the tier's capacity would not hold
};
std::string_view eviction_policy_name(EvictionPolicy policy);
std::optional<EvictionPolicy> eviction_policy_of(std::string_view name);

class Duel {
 public:
  Duel(EvictionPolicy policy, size_t capacity);

  // What became of a call: the leader's ids that came or went, or a new leader, whose are others.
  struct Change {
    std::span<const ShadowId> ids;  // until the next call
    bool leader_changed = false;
  };
  // A request for a chain of blocks, root first.
  Change request(std::span<const ShadowId> chain);
  // One more block at the end of a chain: what a request computed beyond its prompt.
  Change extend(ShadowId parent, ShadowId block);
  Change set_capacity(size_t capacity);

  // At reopening: a stored block, the latest use first; and the scores.
  struct Scores {
    double leaf_lru = 0;
    double s3_fifo = 0;
  };
  void recall(ShadowId block, bool had_hits);
  // Asks for the memory that recalling this one will need.
  void prefetch(ShadowId block) const {
    if (shadows_lru()) lru_.prefetch(block);
    if (shadows_s3()) s3_.prefetch(block);
  }
  void recall_scores(const Scores& scores, EvictionPolicy leader);
  // Both shadows' members and ghosts, to be written down: from the oldest of each queue on, at most
  // `most` a call, and recalled in the opposite order. True when the walk is over. Calls of others
  // may come between: what they move is told twice or not at all.
  void begin_walk();
  bool walk(size_t most, std::vector<ShadowMark>& marks);
  void recall(const ShadowMark& mark);
  EvictionPolicy policy() const { return policy_; }
  uint64_t requests() const { return requests_; }  // that were shown to it

  // Whether the leader spares the block. Nothing is spared under kLeafLru.
  bool holds(ShadowId block) const;

  EvictionPolicy leader() const { return leader_; }  // kLeafLru or kS3Fifo
  const Scores& scores() const { return scores_; }
  uint64_t switches() const { return switches_; }
  size_t capacity() const { return capacity_; }
  size_t memory_bytes() const;

 private:
  bool shadows_lru() const { return policy_ == EvictionPolicy::kAuto; }
  bool shadows_s3() const { return policy_ != EvictionPolicy::kLeafLru; }
  std::vector<ShadowId>* changes_of(EvictionPolicy shadow) {
    return leader_ == shadow ? &changed_ : nullptr;
  }

  EvictionPolicy policy_;
  EvictionPolicy leader_;
  size_t capacity_;
  LeafLruShadow lru_;
  S3FifoShadow s3_;
  Scores scores_;
  uint64_t switches_ = 0;
  uint64_t requests_ = 0;
  size_t walked_ = 0;  // queues that the walk has done: leaf-LRU's, then S3-FIFO's
  std::vector<ShadowId> changed_;
};

}  // namespace ember
