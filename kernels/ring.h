// Ring: a first-in first-out queue that keeps its room, so that steady use allocates nothing.
//
// Journey    none; the device's queues
// Threads    its owner's
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"

namespace ember {

template <typename T>
class Ring {
 public:
  explicit Ring(size_t room = 64) : items_(room) {}

  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }

  void push(T item) {
    if (count_ == items_.size()) grow();
    items_[(head_ + count_) % items_.size()] = std::move(item);
    ++count_;
  }
  T& front() {
    EMBER_CHECK(count_ > 0, "front of an empty ring");
    return items_[head_];
  }
  T pop() {
    T item = std::exchange(front(), T{});
    head_ = (head_ + 1) % items_.size();
    --count_;
    return item;
  }
  // The oldest item that satisfies `test`, or null.
  template <typename F>
  const T* find(F test) const {
    for (size_t i = 0; i < count_; ++i) {
      const T& item = items_[(head_ + i) % items_.size()];
      if (test(item)) return &item;
    }
    return nullptr;
  }

 private:
  void grow() {
    std::vector<T> larger(items_.size() * 2);
    for (size_t i = 0; i < count_; ++i) larger[i] = std::move(items_[(head_ + i) % items_.size()]);
    items_ = std::move(larger);
    head_ = 0;
  }

  std::vector<T> items_;
  size_t head_ = 0;
  size_t count_ = 0;
};

}  // namespace ember
