// Shadow table: block ids in queues, found by id: what both shadow directories are made of.
//
// Journey    none; holds the ids of leaf_lru and s3_fifo
// Owns       24 bytes an id, and 4 for finding it
// Invariant  an id is in the table once, and in one queue
// Threads    engine thread only; pure
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "prefix_index/hash_buckets.h"
#include "prefix_index/stable_pool.h"

namespace ember {

// The first eight bytes of a block's hash. Two blocks that share them share a place in a shadow,
// which costs a worse choice of victim once in 2^64 and nothing else.
using ShadowId = uint64_t;

// A member of a shadow, to be written down and recalled by a later process.
struct ShadowMark {
  ShadowId id = 0;
  uint8_t queue = 0;
  uint8_t count = 0;
  friend bool operator==(const ShadowMark&, const ShadowMark&) = default;
};

template <size_t kQueues>
class ShadowTable {
 public:
  using Ref = uint32_t;
  static constexpr Ref kNone = 0xffffffffu;

  struct Entry {
    ShadowId id = 0;
    Ref next_in_bucket = kNone;
    Ref newer = kNone;
    Ref older = kNone;
    uint8_t queue = 0;
    uint8_t count = 0;
  };
  static_assert(sizeof(Entry) <= 24);

  Ref find(ShadowId id) const {
    Ref ref = buckets_.head(id);  // ids are hashes already
    while (ref != kNone && entries_[ref].id != id) ref = entries_[ref].next_in_bucket;
    return ref;
  }
  // Asks for the memory that finding or adding this id will need.
  void prefetch(ShadowId id) const { __builtin_prefetch(&buckets_.head(id)); }
  Entry& at(Ref ref) { return entries_[ref]; }
  const Entry& at(Ref ref) const { return entries_[ref]; }
  size_t size(size_t queue) const { return queues_[queue].size; }
  Ref oldest(size_t queue) const { return queues_[queue].oldest; }

  // A new id, the newest of its queue.
  Ref add(ShadowId id, size_t queue) {
    buckets_.reach(
        entries_.size() + 1, [this](Ref r) -> Ref& { return entries_[r].next_in_bucket; },
        [this](Ref r) { return entries_[r].id; });
    const Ref ref = entries_.add();
    entries_[ref].id = id;
    entries_[ref].next_in_bucket = std::exchange(buckets_.head(id), ref);
    link_before(ref, queue, kNone);
    return ref;
  }
  // The same at the other end.
  Ref add_oldest(ShadowId id, size_t queue) {
    const Ref ref = add(id, queue);
    if (queues_[queue].size > 1) {
      unlink(ref);
      link_before(ref, queue, queues_[queue].oldest);
    }
    return ref;
  }
  // To the newest end of a queue, or to the place just older than `newer` in its queue.
  void move(Ref ref, size_t queue) {
    unlink(ref);
    link_before(ref, queue, kNone);
  }
  void move_behind(Ref ref, Ref newer) {
    unlink(ref);
    link_before(ref, entries_[newer].queue, newer);
  }
  // A walk over a queue, the oldest first, between whose steps the table may change: what moves to
  // the newest end meanwhile comes (again) at the end.
  void begin_walk(size_t queue) { walk_ = queues_[queue].oldest; }
  Ref walk() {
    const Ref ref = walk_;
    if (ref != kNone) walk_ = entries_[ref].newer;
    return ref;
  }
  void remove(Ref ref) {
    unlink(ref);
    Ref* link = &buckets_.head(entries_[ref].id);
    while (*link != ref) link = &entries_[*link].next_in_bucket;
    *link = entries_[ref].next_in_bucket;
    entries_.remove(ref);
  }
  size_t memory_bytes() const {
    return entries_.memory_bytes() + buckets_.memory_bytes();
  }

 private:
  struct Queue {
    Ref newest = kNone;
    Ref oldest = kNone;
    size_t size = 0;
  };

  void link_before(Ref ref, size_t number, Ref newer) {
    Queue& queue = queues_[number];
    Entry& entry = entries_[ref];
    entry.queue = static_cast<uint8_t>(number);
    entry.newer = newer;
    entry.older = newer == kNone ? queue.newest : entries_[newer].older;
    (entry.older == kNone ? queue.oldest : entries_[entry.older].newer) = ref;
    (newer == kNone ? queue.newest : entries_[newer].older) = ref;
    ++queue.size;
  }
  void unlink(Ref ref) {
    const Entry& entry = entries_[ref];
    Queue& queue = queues_[entry.queue];
    if (ref == walk_) walk_ = entry.newer;
    (entry.newer == kNone ? queue.newest : entries_[entry.newer].older) = entry.older;
    (entry.older == kNone ? queue.oldest : entries_[entry.older].newer) = entry.newer;
    --queue.size;
  }

  StablePool<Entry> entries_;
  HashBuckets<Ref, kNone> buckets_;  // of the chains by id
  std::array<Queue, kQueues> queues_;
  Ref walk_ = kNone;  // the next one of the walk
};

}  // namespace ember
