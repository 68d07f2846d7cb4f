// Block map: a value for each of very many block hashes, in one array without pointers.
//
// Journey    none; where each block lies on the disk (disk_tier_impl.h)
// Owns       one array of entries, between 2/3 and 5/6 full once it has grown
// Invariant  an entry stands at its home (its hash's share of the array) or behind it with no gap
//            between; a vacant entry holds Value{}, for which vacant() is true
// Threads    none of its own: the owner's lock
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "prefix_index/block_hash.h"

namespace ember {

// The part of std::unordered_map that is used, at half its memory and less.
// Pointers and iterators hold until the next insertion or erasure.
template <typename Value>
class BlockMap {
 public:
  struct Entry {
    BlockHash first;
    Value second;
  };

  template <typename E>
  class Walk {
   public:
    Walk(E* at, E* end) : at_(at), end_(end) { skip(); }
    E& operator*() const { return *at_; }
    E* operator->() const { return at_; }
    Walk& operator++() {
      ++at_;
      skip();
      return *this;
    }
    friend bool operator==(const Walk& a, const Walk& b) { return a.at_ == b.at_; }

   private:
    friend class BlockMap;
    void skip() {
      while (at_ != end_ && at_->second.vacant()) ++at_;
    }
    E* at_;
    E* end_;
  };
  using iterator = Walk<Entry>;
  using const_iterator = Walk<const Entry>;

  iterator begin() { return {first(), last()}; }
  iterator end() { return {last(), last()}; }
  const_iterator begin() const { return {entries_.data(), entries_.data() + entries_.size()}; }
  const_iterator end() const {
    return {entries_.data() + entries_.size(), entries_.data() + entries_.size()};
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void clear() {
    std::vector<Entry>().swap(entries_);  // its memory too
    size_ = 0;
  }
  size_t memory_bytes() const { return entries_.capacity() * sizeof(Entry); }

  iterator find(const BlockHash& hash) {
    if (size_ == 0) return end();
    const size_t at = place_of(hash);
    return entries_[at].second.vacant() ? end() : iterator(first() + at, last());
  }
  const_iterator find(const BlockHash& hash) const {
    if (size_ == 0) return end();
    const size_t at = place_of(hash);
    const Entry* entry = entries_.data() + at;
    if (entry->second.vacant()) return end();
    return {entry, entries_.data() + entries_.size()};
  }
  size_t count(const BlockHash& hash) const { return find(hash) == end() ? 0 : 1; }

  // Sets the value, which is not vacant.
  void put(const BlockHash& hash, const Value& value) {
    if ((size_ + 1) * 6 > entries_.size() * 5) grow();
    Entry& entry = entries_[place_of(hash)];
    if (entry.second.vacant()) ++size_;
    entry = {hash, value};
  }

  // The entries behind move up, so that none is cut off from its home.
  void erase(iterator found) {
    auto gap = static_cast<size_t>(found.at_ - first());
    for (size_t at = next(gap); !entries_[at].second.vacant(); at = next(at)) {
      const size_t home = home_of(entries_[at].first);
      // It may move to the gap unless its home lies between the gap and itself.
      const bool between = gap < at ? home > gap && home <= at : home > gap || home <= at;
      if (between) continue;
      entries_[gap] = entries_[at];
      gap = at;
    }
    entries_[gap] = Entry{};
    --size_;
  }

 private:
  static constexpr size_t kFirstEntries = 64;

  Entry* first() { return entries_.data(); }
  Entry* last() { return entries_.data() + entries_.size(); }
  size_t next(size_t at) const { return at + 1 == entries_.size() ? 0 : at + 1; }
  // A hash's share: its first 32 bits, scaled to the array, whose size need not be a power of two.
  size_t home_of(const BlockHash& hash) const {
    const auto bits = load_unaligned<uint32_t>(reinterpret_cast<const char*>(hash.bytes.data()));
    return (uint64_t{bits} * entries_.size()) >> 32;
  }
  // Where the hash is, or where it would be put.
  size_t place_of(const BlockHash& hash) const {
    size_t at = home_of(hash);
    while (!entries_[at].second.vacant() && entries_[at].first != hash) at = next(at);
    return at;
  }
  void grow() {
    std::vector<Entry> old(std::max(kFirstEntries, entries_.size() + entries_.size() / 4));
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (!entry.second.vacant()) entries_[place_of(entry.first)] = entry;
    }
  }

  std::vector<Entry> entries_;
  size_t size_ = 0;
};

}  // namespace ember
