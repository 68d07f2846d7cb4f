// Expert feed-forward against plain loops, and the same bits whoever shares the experts.
#include "kernels/expert_ffn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/simd.h"
#include "tests/kernels/run_team.h"

namespace ember {
namespace {

class Layer {
 public:
  Layer(size_t rows, size_t d, size_t m, size_t experts, size_t top_k, DType dtype, bool shared,
        uint64_t seed) {
    Prng random(seed);
    x_ = random_values(rows * d, dtype, random);
    w_ = random_values(experts * 3 * m * d, dtype, random, 0.3f);
    for (size_t e = 0; e < experts; ++e) {
      const std::byte* base = w_.data() + e * 3 * m * d * dtype_bytes(dtype);
      const size_t matrix = m * d * dtype_bytes(dtype);
      weights_.push_back({base, base + matrix, base + 2 * matrix});
    }
    std::vector<int32_t> deck(experts);
    std::iota(deck.begin(), deck.end(), 0);
    for (size_t r = 0; r < rows; ++r) {
      std::shuffle(deck.begin(), deck.end(), random);
      std::sort(deck.begin(), deck.begin() + static_cast<std::ptrdiff_t>(top_k));
      for (size_t k = 0; k < top_k; ++k) {
        ids_.push_back(deck[k]);
        route_.push_back(static_cast<float>(random.uniform()));
      }
    }
    for (size_t i = 0; i < rows * d; ++i) shared_.push_back(static_cast<float>(random.uniform()));
    y = std::vector<std::byte>(rows * d * dtype_bytes(dtype));
    params.rows = rows;
    params.width = d;
    params.inner = m;
    params.experts = experts;
    params.top_k = top_k;
    params.x = x_.data();
    params.dtype = params.w_dtype = dtype;
    params.weights = weights_.data();
    params.ids = ids_.data();
    params.route_weights = route_.data();
    params.shared = shared ? shared_.data() : nullptr;
    params.y = y.data();
    workspace_.resize(expert_ffn_workspace_bytes(params));
    params.workspace = workspace_.data();
  }

  // Row r by plain loops in double, the inner activations rounded as the contract says.
  std::vector<double> plain(size_t r) const {
    const auto& p = params;
    std::vector<double> out(p.width, 0.0);
    for (size_t k = 0; k < p.top_k; ++k) {
      const auto e = static_cast<size_t>(p.ids[r * p.top_k + k]);
      const size_t base = e * 3 * p.inner * p.width;
      for (size_t i = 0; i < p.inner; ++i) {
        double gate = 0, up = 0;
        for (size_t j = 0; j < p.width; ++j) {
          const auto x = static_cast<double>(value_of(x_, p.dtype, r * p.width + j));
          gate += x * weight(base + i * p.width + j);
          up += x * weight(base + (p.inner + i) * p.width + j);
        }
        double h = gate / (1 + std::exp(-gate)) * up;
        if (p.dtype == DType::kBf16) {
          h = static_cast<double>(to_float(to_bf16(static_cast<float>(h))));
        }
        for (size_t j = 0; j < p.width; ++j) {
          out[j] += static_cast<double>(p.route_weights[r * p.top_k + k]) * h *
                    weight(base + 2 * p.inner * p.width + j * p.inner + i);
        }
      }
    }
    for (size_t j = 0; j < p.width && p.shared != nullptr; ++j) {
      out[j] += static_cast<double>(p.shared[r * p.width + j]);
    }
    return out;
  }
  float at(size_t r, size_t j) const { return value_of(y, params.dtype, r * params.width + j); }

  ExpertFfnParams params;
  std::vector<std::byte> y;

 private:
  double weight(size_t i) const { return static_cast<double>(value_of(w_, params.dtype, i)); }
  std::vector<std::byte> x_, w_, workspace_;
  std::vector<ExpertWeights> weights_;
  std::vector<int32_t> ids_;
  std::vector<float> route_, shared_;
};

TEST(ExpertFfnTest, IsNearToPlainLoops) {
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const size_t rows : {size_t{1}, size_t{5}, size_t{90}}) {
      Layer layer(rows, 37, 19, 7, 3, dtype, rows != 5, rows);
      run_on_team(layer.params, 2);
      for (size_t r = 0; r < rows; ++r) {
        const std::vector<double> expected = layer.plain(r);
        for (size_t j = 0; j < expected.size(); ++j) {
          ASSERT_NEAR(static_cast<double>(layer.at(r, j)), expected[j],
                      (dtype == DType::kF32 ? 1e-5 : 1e-2) * (1 + std::abs(expected[j])));
        }
      }
    }
  }
}

TEST(ExpertFfnTest, ARowDependsOnItselfAlone) {
  constexpr size_t kRows = 130;
  Layer all(kRows, 300, 61, 8, 2, DType::kBf16, true, 3);
  run_on_team(all.params, 1);
  for (const int workers : {2, 4}) {
    Layer same(kRows, 300, 61, 8, 2, DType::kBf16, true, 3);
    run_on_team(same.params, workers);
    ASSERT_EQ(same.y, all.y);
  }
  for (const Simd* level : lower_levels()) {
    Layer lower(kRows, 300, 61, 8, 2, DType::kBf16, true, 3);
    run_at_level(level, lower.params);
    ASSERT_EQ(lower.y, all.y) << level->family;
  }
  for (size_t r = 0; r < kRows; r += 9) {
    Layer one(kRows, 300, 61, 8, 2, DType::kBf16, true, 3);
    one.params.rows = 1;
    one.params.x = static_cast<const std::byte*>(one.params.x) + r * 300 * 2;
    one.params.ids += r * 2;
    one.params.route_weights += r * 2;
    one.params.shared += r * 300;
    run_on_team(one.params, 1);
    for (size_t j = 0; j < 300; ++j) ASSERT_EQ(one.at(0, j), all.at(r, j));
  }
}

}  // namespace
}  // namespace ember
