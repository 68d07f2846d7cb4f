// Stable pool: numbered places whose addresses never move, and whose numbers are used again.
//
// Journey    none; holds the entries and the nodes of radix_index
// Owns       chunks of places, and the list of those that are free
// Invariant  a place that is not in use holds T{}, so what it owned is gone
// Threads    engine thread only
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"

namespace ember {

template <typename T>
class StablePool {
 public:
  // The number of a place in use from now on; it holds T{}.
  uint32_t add() {
    ++size_;
    if (!free_.empty()) {
      const uint32_t number = free_.back();
      free_.pop_back();
      return number;
    }
    EMBER_CHECK(end_ < UINT32_MAX, "a pool has no numbers left");
    if (end_ % kChunk == 0) chunks_.push_back(std::make_unique<T[]>(kChunk));
    return end_++;
  }
  void remove(uint32_t number) {
    (*this)[number] = T{};
    free_.push_back(number);
    --size_;
  }

  T& operator[](uint32_t number) { return chunks_[number / kChunk][number % kChunk]; }
  const T& operator[](uint32_t number) const { return chunks_[number / kChunk][number % kChunk]; }

  size_t size() const { return size_; }  // in use
  uint32_t end() const { return end_; }  // one past the largest number ever given
  size_t memory_bytes() const {
    return chunks_.size() * kChunk * sizeof(T) + chunks_.capacity() * sizeof(chunks_[0]) +
           free_.capacity() * sizeof(uint32_t);
  }

 private:
  static constexpr uint32_t kChunk = 256;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<uint32_t> free_;
  uint32_t end_ = 0;
  size_t size_ = 0;
};

// An array that grows at its end without moving what it holds and without twice its memory.
template <typename T, size_t kChunk = 256>
class StableArray {
 public:
  // Makes `number` a place of the array, which holds T{} if it is new.
  void reach(size_t number) {
    if (number < size_) return;
    size_ = number + 1;
    while (chunks_.size() * kChunk < size_) chunks_.push_back(std::make_unique<T[]>(kChunk));
  }
  T& operator[](size_t number) { return chunks_[number / kChunk][number % kChunk]; }
  const T& operator[](size_t number) const { return chunks_[number / kChunk][number % kChunk]; }
  size_t size() const { return size_; }
  size_t memory_bytes() const {
    return chunks_.size() * kChunk * sizeof(T) + chunks_.capacity() * sizeof(chunks_[0]);
  }

 private:
  std::vector<std::unique_ptr<T[]>> chunks_;
  size_t size_ = 0;
};

}  // namespace ember
