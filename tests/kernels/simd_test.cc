// Simd: all levels give the same bits, and the exponential is near to the exact one.
#include "kernels/simd.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

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
  std::vector<const Simd*> levels = lower_levels();
  levels.push_back(&simd());
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

void expect_equal(const std::vector<float>& a, const std::vector<float>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(bits(a[i]) == bits(b[i]) || (std::isnan(a[i]) && std::isnan(b[i])))
        << what << " " << i << ": " << a[i] << " and " << b[i];
  }
}

TEST(SimdTest, ElementwiseLevelsAreBitEqual) {
  for (const Simd* level : lower_levels()) {
    for (size_t n = 1; n < 90; n += n < 40 ? 1 : 13) {
      for (const double span : {1.0, 20.0, 200.0}) {
        std::vector<float> a = odd_floats(n, n, span);
        std::vector<float> b = a;
        const std::vector<float> up(n, 1.5f);
        simd().silu_mul(a.data(), up.data(), a.data(), n);
        level->silu_mul(b.data(), up.data(), b.data(), n);
        expect_equal(a, b, level->family);
        a = odd_floats(n, n, span);
        b = a;
        simd().sigmoid(a.data(), n);
        level->sigmoid(b.data(), n);
        expect_equal(a, b, level->family);
      }
    }
  }
}

TEST(SimdTest, SoftmaxLevelsAreBitEqual) {
  for (const Simd* level : lower_levels()) {
    for (size_t n = 1; n < 90; ++n) {
      Prng random(n);
      std::vector<float> a(n);
      for (float& v : a) v = static_cast<float>(40 * random.uniform() - 20);
      std::vector<float> b = a;
      const float top = simd().scale_max(a.data(), n, 0.3f);
      ASSERT_EQ(bits(top), bits(level->scale_max(b.data(), n, 0.3f)));
      ASSERT_EQ(bits(simd().exp_sum(a.data(), n, top)), bits(level->exp_sum(b.data(), n, top)))
          << n << " values, " << level->family;
      expect_equal(a, b, level->family);
    }
  }
}

// Neither ragged ends nor what lies behind them take part.
TEST(SimdTest, InnerProductsAreBitEqual) {
  auto scratch = std::make_unique<DotScratch>();
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const size_t rows : std::initializer_list<size_t>{1, 2, 3, 5, 7, 8, 9, 13, 24, 64, 70}) {
      for (const size_t n : std::initializer_list<size_t>{1, 2, 7, 8, 9, 16, 23, 24, 25, 50}) {
        for (const size_t k :
             std::initializer_list<size_t>{1, 7, 8, 24, 31, 32, 33, 40, 100, 512, 513, 1031}) {
          Prng random(rows * 10007 + n * 101 + k);
          const size_t x_stride = k + 3;
          const std::vector<std::byte> x = random_values(rows * x_stride, DType::kF32, random);
          const std::vector<std::byte> w = random_values(n * k, dtype, random);
          DotBlock block;
          block.x = reinterpret_cast<const float*>(x.data());
          block.x_stride = x_stride;
          block.rows = rows;
          block.w = w.data();
          block.w_dtype = dtype;
          block.w_stride = k;
          block.n = n;
          block.k = k;
          block.y_stride = n + 2;
          std::vector<float> best(rows * block.y_stride, -7.0f);
          block.y = best.data();
          simd().dot(block, *scratch);
          for (const Simd* level : lower_levels()) {
            std::vector<float> lower(best.size(), -7.0f);
            block.y = lower.data();
            level->dot(block, *scratch);
            ASSERT_EQ(best, lower) << level->family << ", " << rows << " x " << n << " x " << k;
          }
        }
      }
    }
  }
}

TEST(SimdTest, SumsOfValuesAreBitEqual) {
  for (const size_t rows : std::initializer_list<size_t>{1, 3, 4, 9}) {
    for (const size_t tokens : std::initializer_list<size_t>{1, 5, 64}) {
      for (size_t width = 1; width < 150; width += width < 20 ? 1 : 11) {
        Prng random(rows * 1009 + tokens * 31 + width);
        const std::vector<std::byte> p = random_values(rows * tokens, DType::kF32, random);
        const std::vector<std::byte> v = random_values(tokens * width, DType::kF32, random);
        const auto accumulated = [&, width = width](const Simd& level) {
          std::vector<float> acc(rows * width, 0.25f);
          level.accumulate(ValueBlock{reinterpret_cast<const float*>(p.data()), tokens, rows,
                                      reinterpret_cast<const float*>(v.data()), width, tokens,
                                      width, acc.data(), width});
          return acc;
        };
        for (const Simd* level : lower_levels()) {
          ASSERT_EQ(accumulated(simd()), accumulated(*level)) << level->family << ", " << width;
        }
      }
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
