// Clock: time as a parameter, so that a test can be the weather.
//
// Journey    none; passed to whatever measures, waits or ages
// Threads    any
#pragma once

#include <atomic>
#include <cstdint>

namespace ember {

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic microseconds since an arbitrary start.
  virtual int64_t now_us() const = 0;
  // Wall clock, microseconds since 1970, for what is stored and shown.
  virtual int64_t unix_us() const = 0;
};

// The machine's clock.
const Clock& system_clock();

// A clock that moves only when told.
class ManualClock final : public Clock {
 public:
  int64_t now_us() const override { return now_us_; }
  int64_t unix_us() const override { return now_us_; }
  void advance_us(int64_t us) { now_us_ += us; }

 private:
  std::atomic<int64_t> now_us_{0};
};

}  // namespace ember
