// Block map: a value for each of very many block hashes, in few arrays without pointers.
//
// Journey    none; where each block lies on the disk (disk_tier_impl.h)
// Owns       kShares arrays of entries, each between 2/3 and 5/6 full once it has grown
// Invariant  an entry stands in the array of its hash's first byte, at its home (its hash's share
//            of the array) or behind it with no gap between; a vacant entry holds Value{}, for
//            which vacant() is true
// Threads    none of its own: the owner's lock
//
// The arrays grow one by one, so no insertion, and nobody who waits for the owner's lock, ever
// waits for a million entries to be moved.
#pragma once

#include <algorithm>
#include <array>
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

 private:
  struct Share {
    std::vector<Entry> entries;
    size_t size = 0;
  };
  static constexpr size_t kShares = 64;

 public:
  template <typename S, typename E>
  class Walk {
   public:
    Walk(S* share, S* end, size_t at) : share_(share), end_(end), at_(at) { skip(); }
    E& operator*() const { return share_->entries[at_]; }
    E* operator->() const { return &share_->entries[at_]; }
    Walk& operator++() {
      ++at_;
      skip();
      return *this;
    }
    friend bool operator==(const Walk& a, const Walk& b) {
      return a.share_ == b.share_ && a.at_ == b.at_;
    }

   private:
    friend class BlockMap;
    void skip() {
      for (; share_ != end_; ++share_, at_ = 0) {
        const std::vector<Entry>& entries = share_->entries;
        while (at_ < entries.size() && entries[at_].second.vacant()) ++at_;
        if (at_ < entries.size()) return;
      }
    }
    S* share_;
    S* end_;
    size_t at_;
  };
  using iterator = Walk<Share, Entry>;
  using const_iterator = Walk<const Share, const Entry>;

  iterator begin() { return {shares_.data(), shares_.data() + kShares, 0}; }
  iterator end() { return {shares_.data() + kShares, shares_.data() + kShares, 0}; }
  const_iterator begin() const { return {shares_.data(), shares_.data() + kShares, 0}; }
  const_iterator end() const { return {shares_.data() + kShares, shares_.data() + kShares, 0}; }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void clear() {
    shares_ = {};  // its memory too
    size_ = 0;
  }
  // Of an empty map: room for about so many.
  void reserve(size_t entries) {
    const size_t share = entries / kShares;
    for (Share& one : shares_) one.entries = std::vector<Entry>(share + share / 4 + kFirstEntries);
  }
  size_t memory_bytes() const {
    size_t bytes = 0;
    for (const Share& share : shares_) bytes += share.entries.capacity() * sizeof(Entry);
    return bytes;
  }

  iterator find(const BlockHash& hash) {
    Share& share = share_of(hash);
    const size_t at = found_at(share, hash);
    return at == kNowhere ? end() : iterator(&share, shares_.data() + kShares, at);
  }
  const_iterator find(const BlockHash& hash) const {
    const Share& share = shares_[share_number(hash)];
    const size_t at = found_at(share, hash);
    return at == kNowhere ? end() : const_iterator(&share, shares_.data() + kShares, at);
  }
  size_t count(const BlockHash& hash) const { return find(hash) == end() ? 0 : 1; }

  // Asks for the memory that finding or putting this one will need.
  void prefetch(const BlockHash& hash) const {
    const Share& share = shares_[share_number(hash)];
    if (share.entries.empty()) return;
    const char* entry =
        reinterpret_cast<const char*>(share.entries.data() + home_of(share, hash));
    __builtin_prefetch(entry);
    __builtin_prefetch(entry + 64);
  }
  // Sets the value, which is not vacant.
  void put(const BlockHash& hash, const Value& value) {
    Share& share = share_of(hash);
    if ((share.size + 1) * 6 > share.entries.size() * 5) grow(share);
    Entry& entry = share.entries[place_of(share, hash)];
    if (entry.second.vacant()) {
      ++share.size;
      ++size_;
    }
    entry = {hash, value};
  }

  // The entries behind move up, so that none is cut off from its home.
  void erase(iterator found) {
    Share& share = *found.share_;
    std::vector<Entry>& entries = share.entries;
    size_t gap = found.at_;
    for (size_t at = next(share, gap); !entries[at].second.vacant(); at = next(share, at)) {
      const size_t home = home_of(share, entries[at].first);
      // It may move to the gap unless its home lies between the gap and itself.
      const bool between = gap < at ? home > gap && home <= at : home > gap || home <= at;
      if (between) continue;
      entries[gap] = entries[at];
      gap = at;
    }
    entries[gap] = Entry{};
    --share.size;
    --size_;
  }

 private:
  static constexpr size_t kFirstEntries = 8;
  static constexpr size_t kNowhere = ~size_t{0};

  static size_t share_number(const BlockHash& hash) { return hash.bytes[0] * kShares / 256; }
  Share& share_of(const BlockHash& hash) { return shares_[share_number(hash)]; }
  static size_t next(const Share& share, size_t at) {
    return at + 1 == share.entries.size() ? 0 : at + 1;
  }
  // A hash's share: its first 32 bits, scaled to the array, whose size need not be a power of two.
  // The first byte counts least among them, so that it chooses the array and hardly the place.
  static size_t home_of(const Share& share, const BlockHash& hash) {
    const auto bits = load_unaligned<uint32_t>(reinterpret_cast<const char*>(hash.bytes.data()));
    return (uint64_t{bits} * share.entries.size()) >> 32;
  }
  // Where the hash is, or where it would be put.
  static size_t place_of(const Share& share, const BlockHash& hash) {
    size_t at = home_of(share, hash);
    while (!share.entries[at].second.vacant() && share.entries[at].first != hash) {
      at = next(share, at);
    }
    return at;
  }
  static size_t found_at(const Share& share, const BlockHash& hash) {
    if (share.size == 0) return kNowhere;
    const size_t at = place_of(share, hash);
    return share.entries[at].second.vacant() ? kNowhere : at;
  }
  static void grow(Share& share) {
    const size_t size = share.entries.size();
    std::vector<Entry> old(std::max(kFirstEntries, size + std::max<size_t>(4, size / 8)));
    old.swap(share.entries);
    for (const Entry& entry : old) {
      if (!entry.second.vacant()) share.entries[place_of(share, entry.first)] = entry;
    }
  }

  std::array<Share, kShares> shares_;
  size_t size_ = 0;
};

}  // namespace ember
