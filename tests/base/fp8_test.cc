// fp8: every e4m3 value by its definition, rounding against distances in double, powers of two.
#include "base/fp8.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/prng.h"

namespace ember {
namespace {

double value_of(uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (bits & 0x80) != 0 ? -size : size;
}

TEST(Fp8Test, EveryE4m3WidensExactlyAndComesBack) {
  for (int i = 0; i < 256; ++i) {
    const auto bits = static_cast<uint8_t>(i);
    const float value = from_e4m3(bits);
    if ((bits & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(to_e4m3(value) & 0x7f, 0x7f);
      continue;
    }
    EXPECT_EQ(double{value}, value_of(bits));
    EXPECT_EQ(to_e4m3(value), bits);
  }
}

TEST(Fp8Test, RoundsToNearestTiesToEvenAndSaturates) {
  Prng random(1);
  for (int i = 0; i < 300'000; ++i) {
    float value = std::ldexp(static_cast<float>(2 * random.uniform() - 1),
                             static_cast<int>(random.below(22)) - 11);
    if (i % 3 == 0) {  // a tie
      const auto bits = static_cast<uint8_t>(random.below(126));
      value = static_cast<float>((value_of(bits) + value_of(static_cast<uint8_t>(bits + 1))) / 2);
    }
    const uint8_t found = to_e4m3(value);
    const double miss = std::abs(value_of(found) - double{value});
    for (const int step : {-1, 1}) {
      const int other = (found & 0x7f) + step;
      if (other < 0 || other > 0x7e) continue;
      const double there =
          std::abs(value_of(static_cast<uint8_t>((found & 0x80) | other)) - double{value});
      ASSERT_TRUE(miss < there || (miss == there && found % 2 == 0)) << value;
    }
  }
  EXPECT_EQ(to_e4m3(1e30f), 0x7e);
  EXPECT_EQ(to_e4m3(-std::numeric_limits<float>::infinity()), 0xfe);
}

TEST(Fp8Test, PowersOfTwo) {
  for (int i = 1; i < 255; ++i) {
    EXPECT_EQ(from_e8m0(static_cast<uint8_t>(i)), std::ldexp(1.0f, i - 127));
  }
  EXPECT_EQ(from_e8m0(0), std::ldexp(1.0f, -127));
  EXPECT_TRUE(std::isnan(from_e8m0(255)));
  EXPECT_EQ(power_of_two_from(1.0f), 1.0f);
  EXPECT_EQ(power_of_two_from(std::nextafter(1.0f, 2.0f)), 2.0f);
  EXPECT_EQ(power_of_two_from(0.3f), 0.5f);
}

}  // namespace
}  // namespace ember
