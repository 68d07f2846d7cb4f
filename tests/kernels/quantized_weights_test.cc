// Quantised weights: fp8 in blocks and int8 by row, against the plain form and against the same
// weights widened to fp32 beforehand, to the bit.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/expert_ffn.h"
#include "kernels/matmul.h"
#include "kernels/row_math.h"
#include "tests/kernels/run_team.h"

namespace ember {
namespace {

constexpr DType kBoth[] = {DType::kF8E4M3, DType::kI8};

// A matrix [n, k] in both forms.
struct Matrix {
  std::vector<uint8_t> values;
  std::vector<float> scales;
  std::vector<float> wide;

  Matrix(size_t n, size_t k, DType dtype, Prng& random, bool power_of_two = false) {
    const size_t count = dtype == DType::kI8 ? n
                                             : (n + kScaleBlock - 1) / kScaleBlock *
                                                   ((k + kScaleBlock - 1) / kScaleBlock);
    for (size_t i = 0; i < count; ++i) {
      const auto scale = static_cast<float>(0.001 + 0.01 * random.uniform());
      scales.push_back(power_of_two ? power_of_two_from(scale) : scale);
    }
    for (size_t i = 0; i < n * k; ++i) {
      auto bits = static_cast<uint8_t>(random.below(256));
      if (dtype == DType::kF8E4M3 && (bits & 0x7f) == 0x7f) bits ^= 1;  // not a number
      values.push_back(bits);
    }
    for (size_t r = 0; r < n; ++r) {
      for (size_t c = 0; c < k; ++c) {
        wide.push_back(static_cast<float>(weight_at(values.data(), dtype, scales.data(), k, r, c)));
      }
    }
  }
};

struct Product {
  MatmulParams params;
  std::vector<std::byte> x;
  std::vector<std::byte> y;

  Product(size_t rows, size_t n, size_t k, DType x_dtype, DType y_dtype, uint64_t seed) {
    Prng random(seed);
    x = random_values(rows * k, x_dtype, random);
    y.resize(rows * n * dtype_bytes(y_dtype));
    params.rows = rows;
    params.n = n;
    params.k = k;
    params.x = x.data();
    params.x_dtype = x_dtype;
    params.x_stride = k;
    params.y = y.data();
    params.y_dtype = y_dtype;
    params.y_stride = n;
  }
  void take(const Matrix& w, DType dtype) {
    const bool wide = dtype == DType::kF32;
    params.w = wide ? static_cast<const void*>(w.wide.data()) : w.values.data();
    params.w_dtype = dtype;
    params.w_scales = wide ? nullptr : w.scales.data();
  }
};

// Ragged in both directions: blocks that are cut, inner sizes that no vector divides.
constexpr size_t kShapes[][3] = {{1, 5, 7},      {1, 130, 128}, {3, 257, 130}, {4, 80, 160},
                                 {7, 31, 641},   {8, 129, 136}, {9, 208, 160}, {65, 300, 513},
                                 {70, 24, 1100}, {2, 1, 1}};

TEST(QuantizedWeightsTest, GiveTheBitsOfTheWidenedMatrix) {
  uint64_t seed = 1;
  for (const DType dtype : kBoth) {
    for (const auto& [rows, n, k] : kShapes) {
      for (const DType y : {DType::kF32, DType::kBf16}) {
        Prng random(++seed);
        const Matrix w(n, k, dtype, random, seed % 3 == 0);
        Product wide(rows, n, k, y, y, seed);
        wide.take(w, DType::kF32);
        run_on_team(wide.params, 1);
        Product packed(rows, n, k, y, y, seed);
        packed.take(w, dtype);
        for (const int workers : {1, 3}) {
          run_on_team(packed.params, workers);
          ASSERT_EQ(packed.y, wide.y) << "rows " << rows << " n " << n << " k " << k;
        }
        for (const Simd* level : lower_levels()) {
          run_at_level(level, packed.params);
          ASSERT_EQ(packed.y, wide.y) << level->family << ", k " << k;
        }
      }
    }
  }
}

TEST(QuantizedWeightsTest, AreNearToThePlainForm) {
  for (const DType dtype : kBoth) {
    for (const auto& [rows, n, k] : kShapes) {
      Prng random(n);
      const Matrix w(n, k, dtype, random);
      Product fast(rows, n, k, DType::kF32, DType::kF32, k);
      fast.take(w, dtype);
      run_on_team(fast.params, 2);
      Product plain(rows, n, k, DType::kF32, DType::kF32, k);
      plain.take(w, dtype);
      matmul_reference(plain.params);
      for (size_t i = 0; i < rows * n; ++i) {
        const auto expected = static_cast<double>(value_of(plain.y, DType::kF32, i));
        ASSERT_NEAR(static_cast<double>(value_of(fast.y, DType::kF32, i)), expected,
                    1e-4 + 1e-5 * std::abs(expected));
      }
    }
  }
}

TEST(QuantizedWeightsTest, NotANumberStaysOneAtEveryLevel) {
  const std::vector<uint8_t> w(16, 0x7f);
  const std::vector<float> scales(1, 1.0f);
  std::vector<const Simd*> levels = lower_levels();
  levels.push_back(&simd());
  for (const Simd* level : levels) {
    set_simd_level_for_test(level);
    Product product(1, 1, 16, DType::kF32, DType::kF32, 1);
    product.params.w = w.data();
    product.params.w_dtype = DType::kF8E4M3;
    product.params.w_scales = scales.data();
    run_on_team(product.params, 1);
    EXPECT_TRUE(std::isnan(value_of(product.y, DType::kF32, 0)));
  }
  set_simd_level_for_test(nullptr);
}

TEST(QuantizedWeightsTest, ExpertsGiveTheBitsOfWidenedOnes) {
  constexpr size_t kRows = 13, kWidth = 160, kInner = 136, kExperts = 4, kChosen = 2;
  for (const DType dtype : kBoth) {
    Prng random(7);
    std::vector<Matrix> parts;
    for (size_t e = 0; e < kExperts; ++e) {
      parts.emplace_back(kInner, kWidth, dtype, random);
      parts.emplace_back(kInner, kWidth, dtype, random);
      parts.emplace_back(kWidth, kInner, dtype, random);
    }
    std::vector<ExpertWeights> packed(kExperts), wide(kExperts);
    for (size_t e = 0; e < kExperts; ++e) {
      const Matrix& gate = parts[3 * e];
      const Matrix& up = parts[3 * e + 1];
      const Matrix& down = parts[3 * e + 2];
      packed[e] = {gate.values.data(), up.values.data(), down.values.data(),
                   gate.scales.data(), up.scales.data(), down.scales.data()};
      wide[e] = {gate.wide.data(), up.wide.data(), down.wide.data()};
    }
    const auto x = random_values(kRows * kWidth, DType::kBf16, random);
    std::vector<int32_t> ids;
    std::vector<float> shares(kRows * kChosen, 0.5f);
    for (size_t t = 0; t < kRows; ++t) {
      ids.push_back(t % 2 == 0 ? 0 : 1);
      ids.push_back(t % 3 == 0 ? 2 : 3);
    }
    ExpertFfnParams p;
    p.rows = kRows;
    p.width = kWidth;
    p.inner = kInner;
    p.experts = kExperts;
    p.top_k = kChosen;
    p.x = x.data();
    p.ids = ids.data();
    p.route_weights = shares.data();
    std::vector<std::byte> work(expert_ffn_workspace_bytes(p));
    p.workspace = work.data();
    std::vector<std::byte> from_packed(kRows * kWidth * 2), from_wide(kRows * kWidth * 2);
    p.weights = packed.data();
    p.w_dtype = dtype;
    p.y = from_packed.data();
    run_on_team(p, 2);
    p.weights = wide.data();
    p.w_dtype = DType::kF32;
    p.y = from_wide.data();
    run_on_team(p, 1);
    EXPECT_EQ(from_packed, from_wide);
  }
}

}  // namespace
}  // namespace ember
