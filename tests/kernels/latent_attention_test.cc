// Latent attention: both forms against the plain one, poison beyond the visible rows, the same bits
// however a step is cut.
#include "kernels/latent_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/simd.h"
#include "tests/kernels/run_team.h"

namespace ember {
namespace {

struct Dims {
  size_t heads, nope, rope, value, latent, block_tokens;
};

const Dims kShapes[] = {
    {8, 32, 32, 32, 128, 64}, {3, 9, 6, 11, 21, 16}, {1, 16, 2, 8, 33, 64}, {5, 24, 8, 40, 72, 7}};

// Sequences of cached rows in a pool whose other rows are NaN, and queries at given positions.
class Scene {
 public:
  Scene(const Dims& dims, AttentionForm form, DType dtype, std::vector<int32_t> positions,
        std::vector<int32_t> sequences, uint64_t seed)
      : positions_(std::move(positions)), sequences_(std::move(sequences)) {
    Prng random(seed);
    const size_t width = dims.latent + dims.rope;
    const size_t blocks = (kTokens + dims.block_tokens - 1) / dims.block_tokens;
    fill_pool(dims, dtype, width, blocks, random);
    q_ = random_values(kTokens * dims.heads * (dims.nope + dims.rope), dtype, random);
    q_latent_ = random_values(kTokens * dims.heads * dims.latent, dtype, random, 2);
    w_ = random_values(dims.heads * (dims.nope + dims.value) * dims.latent, dtype, random);
    const size_t out_width = form == AttentionForm::kAbsorb ? dims.latent : dims.value;
    out = std::vector<std::byte>(positions_.size() * dims.heads * out_width * dtype_bytes(dtype));
    params.form = form;
    params.rows = positions_.size();
    params.heads = dims.heads;
    params.nope_dim = dims.nope;
    params.rope_dim = dims.rope;
    params.value_dim = dims.value;
    params.latent_dim = dims.latent;
    params.scale = 0.7f;
    params.q_latent = form == AttentionForm::kAbsorb ? q_latent_.data() : nullptr;
    params.q = q_.data();
    params.q_dtype = params.w_dtype = params.out_dtype = dtype;
    params.w_kv_b = form == AttentionForm::kNaive ? w_.data() : nullptr;
    params.positions = positions_.data();
    params.sequences = sequences_.data();
    params.out = out.data();
  }
  // The query of a row is that of its position, so that rows of different scenes can be compared.
  void take_query(size_t row, size_t position) {
    const size_t q = params.heads * (params.nope_dim + params.rope_dim);
    const size_t latent = params.heads * params.latent_dim;
    const size_t bytes = dtype_bytes(params.q_dtype);
    placed_q_.resize(params.rows * q * bytes);
    placed_latent_.resize(params.rows * latent * bytes);
    std::copy_n(q_.data() + position * q * bytes, q * bytes, placed_q_.data() + row * q * bytes);
    std::copy_n(q_latent_.data() + position * latent * bytes, latent * bytes,
                placed_latent_.data() + row * latent * bytes);
    params.q = placed_q_.data();
    if (params.q_latent != nullptr) params.q_latent = placed_latent_.data();
  }
  std::vector<std::byte> row_out(size_t row) const {
    const size_t bytes = out.size() / params.rows;
    const auto at = out.begin() + static_cast<std::ptrdiff_t>(row * bytes);
    return {at, at + static_cast<std::ptrdiff_t>(bytes)};
  }

  static constexpr size_t kTokens = 300;
  LatentAttentionParams params;
  std::vector<std::byte> out;

 private:
  void fill_pool(const Dims& dims, DType dtype, size_t width, size_t blocks, Prng& random) {
    const size_t row_bytes = width * dtype_bytes(dtype);
    const size_t offset = 64;
    LatentCacheView& cache = params.cache;
    cache.slot_bytes = offset + dims.block_tokens * row_bytes + 32;
    cache.layer_offset = offset;
    cache.row_bytes = row_bytes;
    cache.dtype = dtype;
    cache.block_tokens = dims.block_tokens;
    cache.table_stride = blocks + 1;
    const std::vector<std::byte> rows = random_values(2 * kTokens * width, dtype, random);
    pool_.assign(2 * blocks * cache.slot_bytes, std::byte{0xff});  // NaN in every dtype
    cache.pool = pool_.data();
    tables_.assign(2 * cache.table_stride, -1);
    for (size_t b = 0; b < 2 * blocks; ++b) {
      tables_[b % 2 * cache.table_stride + b / 2] = static_cast<int32_t>(2 * blocks - 1 - b);
    }
    cache.block_tables = tables_.data();
    // Only rows that some query sees are real.
    int32_t last[2] = {-1, -1};
    for (size_t i = 0; i < positions_.size(); ++i) {
      int32_t& end = last[sequences_[i]];
      end = std::max(end, positions_[i]);
    }
    for (int32_t s = 0; s < 2; ++s) {
      for (int32_t t = 0; t <= last[s]; ++t) {
        const size_t from = (static_cast<size_t>(s) * kTokens + static_cast<size_t>(t)) * row_bytes;
        std::copy_n(rows.data() + from, row_bytes, cache.row(s, t));
      }
    }
  }

  std::vector<int32_t> positions_, sequences_, tables_;
  std::vector<std::byte> pool_, q_, q_latent_, w_, placed_q_, placed_latent_;
};

const AttentionForm kForms[] = {AttentionForm::kAbsorb, AttentionForm::kNaive};
const DType kBoth[] = {DType::kF32, DType::kBf16};

TEST(LatentAttentionTest, IsNearToThePlainFormWithPoisonBeyond) {
  uint64_t seed = 1;
  const std::vector<int32_t> positions = {0, 1, 62, 63, 64, 65, 130, 5, 127, 128};
  const std::vector<int32_t> sequences = {0, 0, 0, 0, 0, 0, 0, 1, 1, 1};
  for (const Dims& dims : kShapes) {
    for (const AttentionForm form : kForms) {
      for (const DType dtype : kBoth) {
        Scene fast(dims, form, dtype, positions, sequences, seed);
        Scene plain(dims, form, dtype, positions, sequences, seed++);
        run_on_team(fast.params, 2);
        latent_attention_reference(plain.params);
        for (size_t i = 0; i < fast.out.size() / dtype_bytes(dtype); ++i) {
          const double expected = static_cast<double>(value_of(plain.out, dtype, i));
          const double room = dtype == DType::kF32 ? 2e-5 : 1e-2;
          ASSERT_NEAR(static_cast<double>(value_of(fast.out, dtype, i)), expected,
                      room * (1 + std::abs(expected)));
        }
      }
    }
  }
}

TEST(LatentAttentionTest, LevelsAndWorkersGiveTheSameBits) {
  std::vector<int32_t> positions, sequences;
  for (int32_t i = 0; i < 40; ++i) positions.push_back(100 + i);
  sequences.assign(positions.size(), 0);
  for (const Dims& dims : kShapes) {
    for (const AttentionForm form : kForms) {
      Scene one(dims, form, DType::kBf16, positions, sequences, 9);
      run_on_team(one.params, 1);
      for (const int workers : {2, 4}) {
        Scene many(dims, form, DType::kBf16, positions, sequences, 9);
        run_on_team(many.params, workers);
        ASSERT_EQ(one.out, many.out);
      }
      for (const Simd* level : lower_levels()) {
        Scene lower(dims, form, DType::kBf16, positions, sequences, 9);
        run_at_level(level, lower.params);
        ASSERT_EQ(one.out, lower.out) << level->family;
      }
    }
  }
}

TEST(LatentAttentionTest, AQueryDependsOnItsPrefixAlone) {
  constexpr int32_t kRows = 270;
  std::vector<int32_t> all_positions;
  for (int32_t i = 0; i < kRows; ++i) all_positions.push_back(i);
  const std::vector<int32_t> zeros(all_positions.size(), 0);
  for (const AttentionForm form : kForms) {
    const Dims& dims = kShapes[0];
    Scene whole(dims, form, DType::kBf16, all_positions, zeros, 4);
    run_on_team(whole.params, 1);
    for (const int32_t chunk : {1, 7, 64, 100}) {
      for (int32_t first = 0; first < kRows; first += chunk == 1 ? 23 : chunk) {
        const int32_t last = std::min(first + chunk, kRows);
        const std::vector<int32_t> positions(all_positions.begin() + first,
                                             all_positions.begin() + last);
        const std::vector<int32_t> sequences(zeros.begin(), zeros.begin() + last - first);
        Scene part(dims, form, DType::kBf16, positions, sequences, 4);
        for (int32_t i = first; i < last; ++i) {
          part.take_query(static_cast<size_t>(i - first), static_cast<size_t>(i));
        }
        run_on_team(part.params, chunk % 2 == 0 ? 2 : 1);
        for (int32_t i = first; i < last; ++i) {
          ASSERT_EQ(part.row_out(static_cast<size_t>(i - first)),
                    whole.row_out(static_cast<size_t>(i)))
              << "position " << i << " in chunks of " << chunk;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ember
