// The operations on single rows and values, against plain loops, on several workers.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/run_team.h"

namespace ember {
namespace {

const DType kBoth[] = {DType::kF32, DType::kBf16};

double tolerance(DType dtype, double expected) {
  return (dtype == DType::kF32 ? 1e-5 : 1.0 / 128) * (1e-2 + std::abs(expected));
}

TEST(RmsNormTest, IsNearToThePlainFormOnAnyTeam) {
  for (const DType dtype : kBoth) {
    constexpr size_t kRows = 9, kWidth = 67, kStride = 70;
    Prng random(1);
    const auto x = random_values(kRows * kStride, dtype, random);
    const auto w = random_values(kWidth, DType::kBf16, random);
    for (const int workers : {1, 2, 4}) {
      std::vector<std::byte> y(kRows * kStride * dtype_bytes(dtype));
      RmsNormParams p;
      p.rows = kRows;
      p.width = kWidth;
      p.x = x.data();
      p.x_stride = p.y_stride = kStride;
      p.weight = w.data();
      p.y = y.data();
      p.dtype = dtype;
      run_on_team(p, workers);
      for (size_t r = 0; r < kRows; ++r) {
        double squares = 0;
        for (size_t i = 0; i < kWidth; ++i) {
          squares += std::pow(static_cast<double>(value_of(x, dtype, r * kStride + i)), 2);
        }
        for (size_t i = 0; i < kWidth; ++i) {
          const double expected = static_cast<double>(value_of(x, dtype, r * kStride + i)) *
                                  static_cast<double>(value_of(w, DType::kBf16, i)) /
                                  std::sqrt(squares / kWidth + 1e-6);
          ASSERT_NEAR(static_cast<double>(value_of(y, dtype, r * kStride + i)), expected,
                      tolerance(dtype, expected));
        }
      }
    }
  }
}

TEST(RopeTest, TurnsPairsByTheAngleOfTheirPosition) {
  const float inv_freq[] = {1.0f, 0.25f};
  std::vector<float> table(20 * 4);
  fill_rope_table(inv_freq, 20, 1.5f, table.data());
  constexpr size_t kHeads = 3, kHeadStride = 7, kStride = 25;
  Prng random(2);
  const auto before = random_values(2 * kStride, DType::kF32, random);
  auto x = before;
  const int32_t positions[] = {3, 17};
  RopeParams p;
  p.rows = 2;
  p.heads = kHeads;
  p.rope_dim = 4;
  p.x = x.data() + 2 * sizeof(float);
  p.x_stride = kStride;
  p.head_stride = kHeadStride;
  p.dtype = DType::kF32;
  p.positions = positions;
  p.table = table.data();
  run_on_team(p, 2);
  for (size_t r = 0; r < 2; ++r) {
    for (size_t h = 0; h < kHeads; ++h) {
      for (size_t i = 0; i < 2; ++i) {
        const size_t at = r * kStride + h * kHeadStride + 2 + 2 * i;
        const double angle = static_cast<double>(inv_freq[i]) * positions[r];
        const auto a = static_cast<double>(value_of(before, DType::kF32, at));
        const auto b = static_cast<double>(value_of(before, DType::kF32, at + 1));
        EXPECT_NEAR(value_of(x, DType::kF32, at),
                    1.5 * (a * std::cos(angle) - b * std::sin(angle)), 1e-5);
        EXPECT_NEAR(value_of(x, DType::kF32, at + 1),
                    1.5 * (a * std::sin(angle) + b * std::cos(angle)), 1e-5);
      }
    }
  }
  EXPECT_EQ(value_of(x, DType::kF32, 0), value_of(before, DType::kF32, 0));
  EXPECT_EQ(value_of(x, DType::kF32, 6), value_of(before, DType::kF32, 6));
}

TEST(LatentPackTest, WritesTheRowThatNormAndRopeGive) {
  for (const DType dtype : kBoth) {
    constexpr size_t kLatent = 21, kRope = 6, kWidth = kLatent + kRope, kRows = 5;
    Prng random(3);
    const auto u = random_values(kRows * kWidth, dtype, random);
    const auto w = random_values(kLatent, DType::kF32, random);
    const float inv_freq[] = {1.0f, 0.5f, 0.1f};
    std::vector<float> table(40 * kRope);
    fill_rope_table(inv_freq, 40, 1.0f, table.data());
    const int32_t positions[] = {0, 15, 16, 17, 31};
    const int32_t sequences[] = {0, 0, 0, 1, 1};
    const int32_t blocks[] = {3, 1, 0, 2};
    const size_t row_bytes = kWidth * dtype_bytes(dtype);
    std::vector<std::byte> pool(4 * (16 * row_bytes + 8));
    LatentPackParams p;
    p.rows = kRows;
    p.latent_dim = kLatent;
    p.rope_dim = kRope;
    p.u = u.data();
    p.u_dtype = dtype;
    p.norm_weight = w.data();
    p.norm_dtype = DType::kF32;
    p.rope_table = table.data();
    p.positions = positions;
    p.sequences = sequences;
    p.cache = {pool.data(), 16 * row_bytes + 8, 4, row_bytes, dtype, 16, blocks, 2};
    run_on_team(p, 2);
    EXPECT_EQ(p.cache.row(1, 17), pool.data() + 2 * (16 * row_bytes + 8) + 4 + row_bytes);
    for (size_t r = 0; r < kRows; ++r) {
      std::vector<float> expected(kWidth);
      double squares = 0;
      for (size_t i = 0; i < kWidth; ++i) expected[i] = value_of(u, dtype, r * kWidth + i);
      for (size_t i = 0; i < kLatent; ++i) squares += std::pow(static_cast<double>(expected[i]), 2);
      const double scale = 1 / std::sqrt(squares / kLatent + 1e-6);
      for (size_t i = 0; i < kLatent; ++i) {
        expected[i] = static_cast<float>(static_cast<double>(expected[i]) * scale *
                                         static_cast<double>(value_of(w, DType::kF32, i)));
      }
      rope_row(expected.data() + kLatent,
               table.data() + static_cast<size_t>(positions[r]) * kRope, kRope);
      const std::byte* row = p.cache.row(sequences[r], positions[r]);
      const std::vector<std::byte> written(row, row + row_bytes);
      for (size_t i = 0; i < kWidth; ++i) {
        const auto e = static_cast<double>(expected[i]);
        ASSERT_NEAR(static_cast<double>(value_of(written, dtype, i)), e, tolerance(dtype, e));
      }
    }
  }
}

TEST(SwigluTest, IsSiluTimesUpAndMayBeInPlace) {
  for (const DType dtype : kBoth) {
    constexpr size_t kCount = 3 * 701;
    Prng random(4);
    auto gate = random_values(kCount, dtype, random, 9);
    const auto up = random_values(kCount, dtype, random);
    const auto before = gate;
    run_on_team(SwigluParams{3, 701, gate.data(), up.data(), gate.data(), dtype}, 2);
    for (size_t i = 0; i < kCount; ++i) {
      const auto g = static_cast<double>(value_of(before, dtype, i));
      const double e = g / (1 + std::exp(-g)) * static_cast<double>(value_of(up, dtype, i));
      ASSERT_NEAR(static_cast<double>(value_of(gate, dtype, i)), e, tolerance(dtype, e));
    }
  }
}

TEST(ResidualAddTest, AddsInFp32AndRoundsOnce) {
  for (const DType dtype : kBoth) {
    Prng random(5);
    auto h = random_values(3001, dtype, random);
    const auto x = random_values(3001, dtype, random);
    const auto before = h;
    run_on_team(ResidualAddParams{3001, h.data(), x.data(), dtype}, 4);
    for (size_t i = 0; i < 3001; ++i) {
      const float sum = value_of(before, dtype, i) + value_of(x, dtype, i);
      ASSERT_EQ(value_of(h, dtype, i), dtype == DType::kF32 ? sum : to_float(to_bf16(sum)));
    }
  }
}

TEST(GatherRowsTest, TakesRowsByIdBetweenDtypes) {
  Prng random(6);
  for (const DType table_dtype : kBoth) {
    for (const DType out_dtype : kBoth) {
      const auto table = random_values(10 * 13, table_dtype, random);
      const int32_t ids[] = {9, 0, 3, 3};
      std::vector<std::byte> out(4 * 13 * dtype_bytes(out_dtype));
      const GatherRowsParams p{4,           13,         ids,       10, table.data(),
                               table_dtype, out.data(), out_dtype};
      run_on_team(p, 2);
      for (size_t i = 0; i < 4 * 13; ++i) {
        const float from =
            value_of(table, table_dtype, static_cast<size_t>(ids[i / 13]) * 13 + i % 13);
        ASSERT_EQ(value_of(out, out_dtype, i),
                  out_dtype == DType::kF32 ? from : to_float(to_bf16(from)));
      }
    }
  }
}

TEST(BlockCopyTest, MovesAllBytesOnAnyTeam) {
  Prng random(7);
  const auto from = random_values(5000, DType::kF32, random);
  for (const int workers : {1, 3}) {
    std::vector<std::byte> to(from.size());
    run_on_team(BlockCopyParams{from.data(), to.data(), from.size()}, workers);
    EXPECT_EQ(from, to);
  }
}

}  // namespace
}  // namespace ember
