// Clock: the machine's goes forward, the manual one only when told.
#include "base/clock.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

TEST(ClockTest, TheSystemClockNeverGoesBack) {
  const Clock& clock = system_clock();
  int64_t last = clock.now_us();
  for (int i = 0; i < 1000; ++i) {
    const int64_t now = clock.now_us();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(ClockTest, TheWallClockCountsMicrosecondsSince1970) {
  constexpr int64_t kYear2020 = 1'577'836'800'000'000;
  constexpr int64_t kYear2200 = 7'258'118'400'000'000;
  EXPECT_GT(system_clock().unix_us(), kYear2020);
  EXPECT_LT(system_clock().unix_us(), kYear2200);
}

TEST(ManualClockTest, MovesOnlyWhenTold) {
  ManualClock clock;
  EXPECT_EQ(clock.now_us(), 0);
  EXPECT_EQ(clock.now_us(), 0);
  clock.advance_us(250);
  EXPECT_EQ(clock.now_us(), 250);
  EXPECT_EQ(clock.unix_us(), 250);
}

}  // namespace
}  // namespace ember
