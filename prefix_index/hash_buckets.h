// Hash buckets: the heads of chains by hash, grown a bucket at a time: no insertion ever waits for
// all the others to be put in their places anew.
//
// Journey    none; finds the entries of block_table and of shadow_table
// Owns       four bytes a bucket; the links of the chains are their entries' own
// Invariant  linear hashing: with n buckets, 2^k <= n < 2^(k+1), a hash belongs to its lowest k+1
//            bits if there is such a bucket, else to its lowest k bits
// Threads    engine thread only
// Source     Litwin, Linear hashing: a new tool for file and table addressing, VLDB 1980
#pragma once

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include "prefix_index/stable_pool.h"

namespace ember {

template <typename Ref, Ref kNone>
class HashBuckets {
 public:
  HashBuckets() { add_bucket(); }

  // The first of the chain that this hash belongs to, to be read or set.
  Ref& head(size_t hash) { return heads_[bucket_of(hash)]; }
  const Ref& head(size_t hash) const { return heads_[bucket_of(hash)]; }
  size_t size() const { return heads_.size(); }

  // Makes buckets for `entries`, one for each; `next(ref)` is the link of an entry, to be set, and
  // `hash(ref)` its hash. Cost: constant for one more than there are; for many more the writing of
  // empty buckets, and linear in what the table holds.
  template <typename NextOf, typename HashOf>
  void reach(size_t entries, const NextOf& next, const HashOf& hash) {
    if (entries > 2 * heads_.size()) return rebuild(entries, next, hash);
    while (heads_.size() < entries) {
      const size_t halved = heads_.size() & (std::bit_floor(heads_.size()) - 1);
      add_bucket();
      Ref ref = std::exchange(heads_[halved], kNone);
      while (ref != kNone) {
        const Ref behind = std::exchange(next(ref), kNone);
        next(ref) = std::exchange(head(hash(ref)), ref);
        ref = behind;
      }
    }
  }
  size_t memory_bytes() const { return heads_.memory_bytes(); }

 private:
  template <typename NextOf, typename HashOf>
  void rebuild(size_t entries, const NextOf& next, const HashOf& hash) {
    std::vector<Ref> all;
    for (size_t bucket = 0; bucket < heads_.size(); ++bucket) {
      for (Ref ref = heads_[bucket]; ref != kNone; ref = next(ref)) all.push_back(ref);
    }
    heads_.reach(entries - 1);
    for (size_t bucket = 0; bucket < entries; ++bucket) heads_[bucket] = kNone;
    mask_ = std::bit_ceil(entries + 1) - 1;
    for (Ref ref : all) next(ref) = std::exchange(head(hash(ref)), ref);
  }
  size_t bucket_of(size_t hash) const {
    const size_t low = hash & mask_;
    return low < heads_.size() ? low : low & (mask_ >> 1);
  }
  void add_bucket() {
    const size_t added = heads_.size();
    heads_.reach(added);
    heads_[added] = kNone;
    mask_ = std::bit_ceil(heads_.size() + 1) - 1;
  }

  static constexpr size_t kChunk = 1024;
  StableArray<Ref, kChunk> heads_;
  size_t mask_ = 0;
};

}  // namespace ember
