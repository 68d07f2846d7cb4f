// The machine's clocks.
#include "base/clock.h"

#include <chrono>

namespace ember {
namespace {

class SystemClock final : public Clock {
 public:
  int64_t now_us() const override {
    auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  }
  int64_t unix_us() const override {
    auto time = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace ember
