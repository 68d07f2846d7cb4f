// Event word: a counter that threads wait on, spinning briefly and then asleep in the kernel.
//
// Journey    none; under the device's queues and the team's barrier
// Invariant  advance() wakes every thread that waits for a value seen before it; no wake-up is lost
// Threads    any
// Not here   what the event means (its owner keeps that, and reads value() before looking)
#pragma once

#include <atomic>
#include <cstdint>

namespace ember {

class EventWord {
 public:
  uint32_t value() const { return word_.load(std::memory_order_acquire); }
  void advance();
  // Returns once value() != seen, or after `timeout_us` (negative: no limit). May return early.
  void wait(uint32_t seen, int spins, int64_t timeout_us);
  // The same without a limit, and never early.
  void wait_change(uint32_t seen, int spins) {
    while (value() == seen) wait(seen, spins, -1);
  }

 private:
  std::atomic<uint32_t> word_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace ember
