// Write budget: how many bytes a day may be written to the drive, which wears out. Pure.
//
// Journey    offload_executor asks it before each write
// Invariant  in no 24 hours is more charged than the budget, and what one write overdraws; an
//            hour's worth (1/24) can be saved up for a burst
// Threads    engine thread only; time is an argument
// Not here   what waits or is given up meanwhile (store/cache/offload_executor.h)
#pragma once

#include <algorithm>
#include <cstdint>

namespace ember {

class WriteBudget {
 public:
  // `bytes_per_day` 0: no limit.
  explicit WriteBudget(uint64_t bytes_per_day, int64_t now_us)
      : most_(static_cast<double>(bytes_per_day) / 24),
        bytes_per_us_((static_cast<double>(bytes_per_day) - most_) / kDayUs),
        left_(most_),
        at_us_(now_us) {}

  bool limited() const { return most_ > 0; }
  bool allows(int64_t now_us) {
    if (!limited()) return true;
    left_ = std::min(most_, left_ + static_cast<double>(now_us - at_us_) * bytes_per_us_);
    at_us_ = now_us;
    return left_ > 0;
  }
  // What was written can exceed what was left: that is paid back before the next write.
  void charge(uint64_t bytes) { left_ -= limited() ? static_cast<double>(bytes) : 0.0; }
  uint64_t left_bytes() const { return left_ > 0 ? static_cast<uint64_t>(left_) : 0; }

 private:
  static constexpr double kDayUs = 86'400e6;
  double most_;
  double bytes_per_us_;
  double left_;
  int64_t at_us_;
};

}  // namespace ember
