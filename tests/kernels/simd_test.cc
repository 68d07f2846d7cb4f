// Simd: the two levels give the same bits, and the exponential is near to the exact one.
#include "kernels/simd.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/kernels/run_team.h"

namespace ember {
namespace {

uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

std::vector<float> odd_floats(size_t n, uint64_t seed, double span) {
  Prng random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(span * (2 * random.uniform() - 1));
  if (n > 6) {
    values[0] = std::numeric_limits<float>::quiet_NaN();
    values[1] = std::numeric_limits<float>::infinity();
    values[2] = -values[1];
    values[3] = -0.0f;
    values[4] = 1e-40f;
    values[5] = -std::numeric_limits<float>::signaling_NaN();
  }
  return values;
}

TEST(SimdTest, ConversionsAreThoseOfTheBase) {
  const Simd* levels[] = {&scalar_simd(), &simd()};
  for (const Simd* level : levels) {
    for (const size_t n : {size_t{1}, size_t{7}, size_t{8}, size_t{77}}) {
      const std::vector<float> values = odd_floats(n, n, 100);
      std::vector<bf16> halves(n);
      level->narrow(values.data(), halves.data(), n);
      std::vector<float> wide(n);
      level->widen(halves.data(), wide.data(), n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(halves[i], to_bf16(values[i])) << level->family << " value " << values[i];
        ASSERT_EQ(bits(wide[i]), bits(to_float(halves[i])));
      }
    }
  }
}

TEST(SimdTest, ElementwiseLevelsAreBitEqual) {
  for (size_t n = 1; n < 90; n += n < 20 ? 1 : 13) {
    for (const double span : {1.0, 20.0, 200.0}) {
      std::vector<float> a = odd_floats(n, n, span);
      std::vector<float> b = a;
      const std::vector<float> up(n, 1.5f);
      simd().silu_mul(a.data(), up.data(), a.data(), n);
      scalar_simd().silu_mul(b.data(), up.data(), b.data(), n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_TRUE(bits(a[i]) == bits(b[i]) || (std::isnan(a[i]) && std::isnan(b[i]))) << i;
      }
      std::vector<float> scores = odd_floats(std::min<size_t>(n, 6), n, span);
      std::vector<float> copy = scores;
      const float top = simd().scale_max(scores.data(), scores.size(), 0.3f);
      ASSERT_EQ(bits(top), bits(scalar_simd().scale_max(copy.data(), copy.size(), 0.3f)));
      const float sum = simd().exp_sum(scores.data(), scores.size(), top);
      ASSERT_EQ(bits(sum), bits(scalar_simd().exp_sum(copy.data(), copy.size(), top)));
    }
  }
}

TEST(SimdTest, ExponentialIsWithinTwoUlp) {
  for (double x = -87; x < 88; x += 0.0137) {
    auto value = static_cast<float>(x);
    const double expected = std::exp(static_cast<double>(value));
    simd().exp_sum(&value, 1, 0.0f);
    ASSERT_NEAR(static_cast<double>(value) / expected, 1.0, 2.4e-7) << x;
  }
}

TEST(SimdTest, ExponentialEndsAreExact) {
  const float infinity = std::numeric_limits<float>::infinity();
  float values[] = {0.0f, -infinity, -200.0f, infinity, 100.0f};
  simd().exp_sum(values, 5, 0.0f);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], 0.0f);
  EXPECT_EQ(values[2], 0.0f);
  EXPECT_EQ(values[3], infinity);
  EXPECT_EQ(values[4], infinity);
}

}  // namespace
}  // namespace ember
