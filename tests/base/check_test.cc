// Check: what cannot happen ends the program, with the place and the reason.
#include "base/check.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

TEST(CheckDeathTest, ABrokenConditionNamesPlaceReasonAndCondition) {
  const int legs = 3;
  EXPECT_DEATH(EMBER_CHECK(legs == 4, "a table has four legs"),
               "check_test.cc:[0-9]+: check failed: a table has four legs \\(legs == 4\\)");
}

TEST(CheckTest, AHoldingConditionIsReadOnce) {
  int reads = 0;
  EMBER_CHECK(++reads == 1, "once");
  EXPECT_EQ(reads, 1);
}

}  // namespace
}  // namespace ember
