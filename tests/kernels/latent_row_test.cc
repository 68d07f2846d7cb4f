// Latent row: the fp8 row's bytes, its error, and attention on it against the same values in fp32.
#include "kernels/latent_row.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/latent_attention.h"
#include "kernels/simd.h"
#include "tests/kernels/run_team.h"

namespace ember {
namespace {

std::vector<float> random_row(size_t n, Prng& random) {
  std::vector<float> row(n);
  for (float& value : row) value = static_cast<float>(3 * (random.uniform() - 0.5));
  return row;
}

TEST(LatentRowTest, SizesAreThoseOfThePublishedForms) {
  EXPECT_EQ(latent_row_bytes(DType::kF8E4M3, 512, 64), 656u);
  EXPECT_EQ(latent_row_bytes(DType::kBf16, 512, 64), 1152u);
  EXPECT_EQ(latent_row_bytes(DType::kF8E4M3, 130, 6), 130u + 8 + 12);
}

TEST(LatentRowTest, Fp8IsNearAndTheRopeKeyIsBf16) {
  Prng random(1);
  for (const size_t latent : {size_t{512}, size_t{64}, size_t{130}, size_t{9}}) {
    const std::vector<float> row = random_row(latent + 16, random);
    std::vector<std::byte> bytes(latent_row_bytes(DType::kF8E4M3, latent, 16));
    store_latent_row(row.data(), DType::kF8E4M3, latent, 16, bytes.data());
    std::vector<float> back(latent + 16);
    load_latent_row(bytes.data(), DType::kF8E4M3, latent, 16, back.data());
    for (size_t i = 0; i < latent; ++i) {
      float most = 0;
      const size_t first = i / 128 * 128;
      for (size_t j = first; j < std::min(first + 128, latent); ++j) {
        most = std::max(most, std::abs(row[j]));
      }
      // Half a step of three bits of mantissa, or of the smallest values.
      const float room = std::max(std::abs(row[i]) / 16, most / 448 / 1024) * 1.001f;
      ASSERT_NEAR(back[i], row[i], room);
      ASSERT_EQ(static_cast<double>(back[i]),
                latent_row_value(bytes.data(), DType::kF8E4M3, latent, i));
    }
    for (size_t i = latent; i < row.size(); ++i) ASSERT_EQ(back[i], to_float(to_bf16(row[i])));
    for (const Simd* level : lower_levels()) {
      set_simd_level_for_test(level);
      std::vector<float> lower(latent + 16);
      load_latent_row(bytes.data(), DType::kF8E4M3, latent, 16, lower.data());
      set_simd_level_for_test(nullptr);
      EXPECT_EQ(lower, back) << level->family;
    }
  }
}

TEST(LatentRowTest, ZerosStayZeros) {
  const std::vector<float> row(40);
  std::vector<std::byte> bytes(latent_row_bytes(DType::kF8E4M3, 32, 8));
  store_latent_row(row.data(), DType::kF8E4M3, 32, 8, bytes.data());
  std::vector<float> back(40, 1.0f);
  load_latent_row(bytes.data(), DType::kF8E4M3, 32, 8, back.data());
  EXPECT_EQ(back, row);
}

TEST(LatentRowTest, AttentionReadsFp8RowsAsTheValuesTheyHold) {
  constexpr size_t kTokens = 150, kHeads = 3, kNope = 24, kRope = 8, kValue = 20, kLatent = 136;
  Prng random(5);
  std::vector<std::byte> packed, wide;
  const size_t row_bytes = latent_row_bytes(DType::kF8E4M3, kLatent, kRope);
  for (size_t t = 0; t < kTokens; ++t) {
    const std::vector<float> row = random_row(kLatent + kRope, random);
    std::vector<std::byte> bytes(row_bytes);
    store_latent_row(row.data(), DType::kF8E4M3, kLatent, kRope, bytes.data());
    std::vector<float> back(kLatent + kRope);
    load_latent_row(bytes.data(), DType::kF8E4M3, kLatent, kRope, back.data());
    packed.insert(packed.end(), bytes.begin(), bytes.end());
    const auto values = std::as_bytes(std::span(back));
    wide.insert(wide.end(), values.begin(), values.end());
  }
  const auto q = random_values(kHeads * (kNope + kRope), DType::kF32, random);
  const auto q_latent = random_values(kHeads * kLatent, DType::kF32, random);
  const auto w = random_values(kHeads * (kNope + kValue) * kLatent, DType::kBf16, random);
  const int32_t position = kTokens - 1;
  const int32_t zero = 0;
  for (const AttentionForm form : {AttentionForm::kAbsorb, AttentionForm::kNaive}) {
    LatentAttentionParams p;
    p.form = form;
    p.rows = 1;
    p.heads = kHeads;
    p.nope_dim = kNope;
    p.rope_dim = kRope;
    p.value_dim = kValue;
    p.latent_dim = kLatent;
    p.scale = 0.3f;
    p.q = q.data();
    p.q_latent = form == AttentionForm::kAbsorb ? q_latent.data() : nullptr;
    p.q_dtype = p.out_dtype = DType::kF32;
    p.w_kv_b = form == AttentionForm::kNaive ? w.data() : nullptr;
    p.positions = &position;
    p.sequences = &zero;
    p.cache.block_tables = &zero;
    p.cache.block_tokens = kTokens;
    std::vector<std::byte> from_packed(kHeads * kLatent * 4), from_wide = from_packed;
    p.cache.pool = packed.data();
    p.cache.row_bytes = row_bytes;
    p.cache.dtype = DType::kF8E4M3;
    p.out = from_packed.data();
    run_on_team(p, 1);
    std::vector<std::byte> plain = from_packed;
    p.out = plain.data();
    latent_attention_reference(p);
    p.cache.pool = wide.data();
    p.cache.row_bytes = (kLatent + kRope) * sizeof(float);
    p.cache.dtype = DType::kF32;
    p.out = from_wide.data();
    run_on_team(p, 1);
    EXPECT_EQ(from_packed, from_wide);
    const size_t width = kHeads * (form == AttentionForm::kAbsorb ? kLatent : kValue);
    for (size_t i = 0; i < width; ++i) {
      ASSERT_NEAR(value_of(plain, DType::kF32, i), value_of(from_packed, DType::kF32, i), 1e-4);
    }
  }
}

}  // namespace
}  // namespace ember
