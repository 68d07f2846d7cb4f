// Latent attention on the CPU: units of (query, head) pairs walk the tiles with a running softmax.
#include "kernels/latent_attention.h"

#include <limits>

#include "kernels/latent_row.h"
#include "kernels/row_math.h"
#include "kernels/solo_team.h"

namespace ember {
namespace {

constexpr size_t kTileTokens = 64;
constexpr size_t kAbsorbPairs = 64;  // of a unit: its queries, sums and one tile fit in the L2
constexpr size_t kNaivePairs = 256;  // more, since expanding a tile costs as much as many queries

// Pairs of a sequence that share a tile. Absorb: successive (row, head). Naive: one head's rows.
struct Unit {
  size_t first_row;
  size_t first_head;
  size_t pairs;
};

struct Shape {
  size_t row_width;   // of a cached row: C + R
  size_t key_width;   // what a query is multiplied with
  size_t value_width;
  size_t max_pairs;
  size_t expanded_width;  // naive: [value | key] of one token and head
  size_t halves_width;    // naive, of a bf16 cache: C
};

struct Workspace {
  DotScratch* dot;
  float* tile;      // [64, row_width]
  bf16* halves;     // [64, latent_dim], naive form only: latents as they lie
  float* expanded;  // [64, expanded_width], naive form only
  float* q;         // [max_pairs, key_width]
  float* scores;    // [max_pairs, 64]
  float* acc;       // [max_pairs, value_width]
  float* maxima;    // [max_pairs]
  float* sums;      // [max_pairs]
  size_t* visible;  // [max_pairs]: tokens of the tile at hand
};

Shape shape_of(const LatentAttentionParams& p) {
  const bool naive = p.form == AttentionForm::kNaive;
  Shape s;
  s.row_width = p.latent_dim + p.rope_dim;
  s.key_width = naive ? p.nope_dim + p.rope_dim : s.row_width;
  s.value_width = naive ? p.value_dim : p.latent_dim;
  s.max_pairs = naive ? kNaivePairs : kAbsorbPairs;
  s.expanded_width = naive ? s.value_width + s.key_width : 0;
  s.halves_width = naive && p.cache.dtype == DType::kBf16 ? p.latent_dim : 0;
  return s;
}

Workspace take_workspace(const Shape& s, CpuTeam& team) {
  using Parts = ScratchParts;
  Parts parts(team, sizeof(DotScratch) + Parts::room_for<float>(kTileTokens * s.row_width) +
                        Parts::room_for<bf16>(kTileTokens * s.halves_width) +
                        Parts::room_for<float>(kTileTokens * s.expanded_width) +
                        Parts::room_for<float>(s.max_pairs * s.key_width) +
                        Parts::room_for<float>(s.max_pairs * kTileTokens) +
                        Parts::room_for<float>(s.max_pairs * s.value_width) +
                        2 * Parts::room_for<float>(s.max_pairs) +
                        Parts::room_for<size_t>(s.max_pairs));
  Workspace w;
  w.dot = parts.take<DotScratch>(1);
  w.tile = parts.take<float>(kTileTokens * s.row_width);
  w.halves = parts.take<bf16>(kTileTokens * s.halves_width);
  w.expanded = parts.take<float>(kTileTokens * s.expanded_width);
  w.q = parts.take<float>(s.max_pairs * s.key_width);
  w.scores = parts.take<float>(s.max_pairs * kTileTokens);
  w.acc = parts.take<float>(s.max_pairs * s.value_width);
  w.maxima = parts.take<float>(s.max_pairs);
  w.sums = parts.take<float>(s.max_pairs);
  w.visible = parts.take<size_t>(s.max_pairs);
  return w;
}

class UnitRun {
 public:
  UnitRun(const LatentAttentionParams& p, const Shape& s, const Workspace& w, const Unit& unit,
          CpuTeam& alone, MatmulFunction matmul)
      : p_(p), s_(s), w_(w), unit_(unit), alone_(alone), matmul_(matmul) {}

  void run() {
    load_queries();
    int32_t end = 0;
    for (size_t i = 0; i < unit_.pairs; ++i) end = std::max(end, p_.positions[row_of(i)] + 1);
    constexpr auto kStep = static_cast<int32_t>(kTileTokens);
    for (int32_t start = 0; start < end; start += kStep) {
      load_tile(start, static_cast<size_t>(std::min(kStep, end - start)));
      attend_tile(start);
    }
    store_results();
  }

 private:
  bool naive() const { return p_.form == AttentionForm::kNaive; }
  // Row and head of pair i.
  size_t row_of(size_t i) const {
    return naive() ? unit_.first_row + i : unit_.first_row + (unit_.first_head + i) / p_.heads;
  }
  size_t head_of(size_t i) const {
    return naive() ? unit_.first_head : (unit_.first_head + i) % p_.heads;
  }
  const float* keys() const { return naive() ? w_.expanded + s_.value_width : w_.tile; }
  const float* values() const { return naive() ? w_.expanded : w_.tile; }
  size_t token_stride() const { return naive() ? s_.expanded_width : s_.row_width; }

  void load_queries() {
    const size_t head_width = p_.nope_dim + p_.rope_dim;
    for (size_t i = 0; i < unit_.pairs; ++i) {
      const size_t pair = row_of(i) * p_.heads + head_of(i);
      float* to = w_.q + i * s_.key_width;
      if (naive()) {
        load_row(element(p_.q, p_.q_dtype, pair * head_width), p_.q_dtype, head_width, to);
      } else {
        load_row(element(p_.q_latent, p_.q_dtype, pair * p_.latent_dim), p_.q_dtype, p_.latent_dim,
                 to);
        load_row(element(p_.q, p_.q_dtype, pair * head_width + p_.nope_dim), p_.q_dtype,
                 p_.rope_dim, to + p_.latent_dim);
      }
    }
    std::fill_n(w_.acc, unit_.pairs * s_.value_width, 0.0f);
    std::fill_n(w_.sums, unit_.pairs, 0.0f);
    std::fill_n(w_.maxima, unit_.pairs, -std::numeric_limits<float>::infinity());
  }

  void load_tile(int32_t start, size_t tokens) {
    tokens_ = tokens;
    const int32_t sequence = p_.sequences[unit_.first_row];
    for (size_t j = 0; j < tokens; ++j) {
      const std::byte* row = p_.cache.row(sequence, start + static_cast<int32_t>(j));
      if (s_.halves_width > 0) {
        const size_t bytes = p_.latent_dim * sizeof(bf16);
        std::memcpy(w_.halves + j * p_.latent_dim, row, bytes);
        load_row(row + bytes, DType::kBf16, p_.rope_dim, rope_key(j));
        continue;
      }
      float* to = w_.tile + j * s_.row_width;
      load_latent_row(row, p_.cache.dtype, p_.latent_dim, p_.rope_dim, to);
      if (naive()) std::memcpy(rope_key(j), to + p_.latent_dim, p_.rope_dim * sizeof(float));
    }
    if (naive()) expand_tile();
  }

  // Of token j of the tile, in its expanded form: [value | nope key | RoPE key].
  float* rope_key(size_t j) const {
    return w_.expanded + j * s_.expanded_width + s_.value_width + p_.nope_dim;
  }

  // Each token's values and keys of this head, in fp32. Latents that lie in bf16 stay so, for a
  // library that multiplies halves faster.
  void expand_tile() {
    const size_t base = unit_.first_head * (p_.nope_dim + p_.value_dim) * p_.latent_dim;
    MatmulParams product;
    product.rows = tokens_;
    product.n = p_.nope_dim;
    product.k = p_.latent_dim;
    const bool halves = s_.halves_width > 0;
    product.x = halves ? static_cast<const void*>(w_.halves) : w_.tile;
    product.x_dtype = halves ? DType::kBf16 : DType::kF32;
    product.x_stride = halves ? p_.latent_dim : s_.row_width;
    product.w = element(p_.w_kv_b, p_.w_dtype, base);
    product.w_dtype = p_.w_dtype;
    product.y = w_.expanded + s_.value_width;
    product.y_dtype = DType::kF32;
    product.y_stride = s_.expanded_width;
    matmul_(product, alone_);
    product.w = element(p_.w_kv_b, p_.w_dtype, base + p_.nope_dim * p_.latent_dim);
    product.n = p_.value_dim;
    product.y = w_.expanded;
    matmul_(product, alone_);
  }

  void attend_tile(int32_t start) {
    size_t first = unit_.pairs;
    for (size_t i = unit_.pairs; i-- > 0;) {
      const int32_t left = p_.positions[row_of(i)] + 1 - start;
      w_.visible[i] = std::min(static_cast<size_t>(std::max(left, 0)), tokens_);
      if (w_.visible[i] > 0) first = i;
    }
    if (first == unit_.pairs) return;
    simd().dot(DotBlock{w_.q + first * s_.key_width, s_.key_width, unit_.pairs - first, keys(),
                        DType::kF32, token_stride(), tokens_, s_.key_width,
                        w_.scores + first * kTileTokens, kTileTokens},
               *w_.dot);
    for (size_t i = first; i < unit_.pairs;) {
      size_t end = i;
      for (; end < unit_.pairs && w_.visible[end] == w_.visible[i]; ++end) soften(end);
      // What a query may not see takes no part, not even times zero.
      simd().accumulate(ValueBlock{w_.scores + i * kTileTokens, kTileTokens, end - i, values(),
                                   token_stride(), w_.visible[i], s_.value_width,
                                   w_.acc + i * s_.value_width, s_.value_width});
      i = end;
    }
  }

  // Scores of pair i become weights against its running maximum.
  void soften(size_t i) {
    if (w_.visible[i] == 0) return;
    float* scores = w_.scores + i * kTileTokens;
    const float tile_max = simd().scale_max(scores, w_.visible[i], p_.scale);
    const float old_max = w_.maxima[i];
    const float new_max = old_max > tile_max ? old_max : tile_max;
    const float sum = simd().exp_sum(scores, w_.visible[i], new_max);
    if (new_max > old_max && old_max > -std::numeric_limits<float>::infinity()) {
      float factor = old_max;
      simd().exp_sum(&factor, 1, new_max);
      float* acc = w_.acc + i * s_.value_width;
      for (size_t j = 0; j < s_.value_width; ++j) acc[j] *= factor;
      w_.sums[i] *= factor;
    }
    w_.sums[i] += sum;
    w_.maxima[i] = new_max;
  }

  void store_results() {
    for (size_t i = 0; i < unit_.pairs; ++i) {
      float* acc = w_.acc + i * s_.value_width;
      for (size_t j = 0; j < s_.value_width; ++j) acc[j] /= w_.sums[i];
      const size_t pair = row_of(i) * p_.heads + head_of(i);
      store_row(acc, p_.out_dtype, s_.value_width,
                element(p_.out, p_.out_dtype, pair * s_.value_width));
    }
  }

  const LatentAttentionParams& p_;
  const Shape& s_;
  const Workspace& w_;
  const Unit unit_;
  CpuTeam& alone_;
  const MatmulFunction matmul_;
  size_t tokens_ = 0;
};

size_t ceil_div(size_t a, size_t b) { return (a + b - 1) / b; }

// Calls f(unit) for every unit of the step, in one order on all workers.
template <class F>
void for_each_unit(const LatentAttentionParams& p, size_t workers, F f) {
  const size_t fair = std::max<size_t>(ceil_div(p.rows * p.heads, workers), 1);
  for (size_t first = 0; first < p.rows;) {
    size_t last = first + 1;
    while (last < p.rows && p.sequences[last] == p.sequences[first]) ++last;
    const size_t rows = last - first;
    if (p.form == AttentionForm::kNaive) {
      const size_t step = std::min({kNaivePairs, fair, rows});
      for (size_t row = first; row < last; row += step) {
        for (size_t head = 0; head < p.heads; ++head) {
          f(Unit{row, head, std::min(step, last - row)});
        }
      }
    } else {
      const size_t step = std::min(kAbsorbPairs, fair);
      for (size_t pair = 0; pair < rows * p.heads; pair += step) {
        f(Unit{first + pair / p.heads, pair % p.heads, std::min(step, rows * p.heads - pair)});
      }
    }
    first = last;
  }
}

}  // namespace

void latent_attention_cpu(const LatentAttentionParams& params, CpuTeam& team,
                          MatmulFunction matmul) {
  thread_local ScratchMemory memory;
  LoneWorker alone(team, memory);
  const Shape shape = shape_of(params);
  const Workspace workspace = take_workspace(shape, team);
  const auto workers = static_cast<size_t>(team.size());
  size_t index = 0;
  for_each_unit(params, workers, [&](const Unit& unit) {
    const bool mine = index % workers == static_cast<size_t>(team.rank());
    ++index;
    if (mine) UnitRun(params, shape, workspace, unit, alone, matmul).run();
  });
}

}  // namespace ember
