// Expert feed-forward on the CPU: tokens grouped by expert, output columns to each worker.
#include "kernels/expert_ffn.h"

#include "kernels/row_math.h"

namespace ember {
namespace {

// Columns whose sums stay near while all experts add to them.
constexpr size_t kColumns = 10 * kDotColumns;

struct Workspace {
  size_t* offsets;  // [E + 1]: where an expert's pairs begin in `order`
  size_t* order;    // [pairs]: (row, choice) pairs, by expert, then by row
  DotScratch* dot;
  float* x;    // [kDotRows, padded stride of d or m]
  float* a;    // [kDotRows, kColumns]
  float* b;    // [kDotRows, kColumns]
  float* acc;  // [rows, kColumns]
};

Workspace take_workspace(const ExpertFfnParams& p, CpuTeam& team) {
  const size_t pairs = p.rows * p.top_k;
  const size_t x_floats = kDotRows * std::max(padded_stride(p.width), padded_stride(p.inner));
  const size_t block_floats = kDotRows * kColumns;
  using Parts = ScratchParts;
  Parts parts(team, Parts::room_for<size_t>(p.experts + 1) + Parts::room_for<size_t>(pairs) +
                        sizeof(DotScratch) + Parts::room_for<float>(x_floats) +
                        2 * Parts::room_for<float>(block_floats) +
                        Parts::room_for<float>(p.rows * kColumns));
  Workspace w;
  w.offsets = parts.take<size_t>(p.experts + 1);
  w.order = parts.take<size_t>(pairs);
  w.dot = parts.take<DotScratch>(1);
  w.x = parts.take<float>(x_floats);
  w.a = parts.take<float>(block_floats);
  w.b = parts.take<float>(block_floats);
  w.acc = parts.take<float>(p.rows * kColumns);
  return w;
}

// A counting sort; every worker makes its own, which is cheaper than meeting.
void group_by_expert(const ExpertFfnParams& p, const Workspace& w) {
  const size_t pairs = p.rows * p.top_k;
  std::fill_n(w.offsets, p.experts + 1, size_t{0});
  for (size_t i = 0; i < pairs; ++i) {
    EMBER_CHECK(p.ids[i] >= 0 && static_cast<size_t>(p.ids[i]) < p.experts, "no such expert");
    ++w.offsets[static_cast<size_t>(p.ids[i]) + 1];
  }
  for (size_t e = 0; e < p.experts; ++e) w.offsets[e + 1] += w.offsets[e];
  for (size_t i = 0; i < pairs; ++i) w.order[w.offsets[static_cast<size_t>(p.ids[i])]++] = i;
  for (size_t e = p.experts; e > 0; --e) w.offsets[e] = w.offsets[e - 1];
  w.offsets[0] = 0;
}

void* inner_row(const ExpertFfnParams& p, size_t place) {
  return element(p.workspace, p.dtype, place * p.inner);
}

// Inner activations of pairs [first, last) of one expert, columns [from, to).
void inner_block(const ExpertFfnParams& p, const Workspace& w, const ExpertWeights& expert,
                 size_t first, size_t last, size_t from, size_t to) {
  const size_t stride = padded_stride(p.width);
  for (size_t i = first; i < last; ++i) {
    const size_t row = w.order[i] / p.top_k;
    load_row(element(p.x, p.dtype, row * p.width), p.dtype, p.width,
             w.x + (i - first) * stride);
  }
  for (size_t column = from; column < to; column += kColumns) {
    const size_t n = std::min(kColumns, to - column);
    DotBlock block{w.x, stride, last - first, element(expert.gate, p.w_dtype, column * p.width),
                   p.w_dtype, p.width, n, p.width, w.a, kColumns, expert.gate_scales, column};
    simd().dot(block, *w.dot);
    block.w = element(expert.up, p.w_dtype, column * p.width);
    block.w_scales = expert.up_scales;
    block.y = w.b;
    simd().dot(block, *w.dot);
    for (size_t i = first; i < last; ++i) {
      float* gate = w.a + (i - first) * kColumns;
      simd().silu_mul(gate, w.b + (i - first) * kColumns, gate, n);
      store_row(gate, p.dtype, n, element(inner_row(p, i), p.dtype, column));
    }
  }
}

// Adds one expert's weighted output of pairs [first, last), columns [column, column + n), to `acc`.
void outer_block(const ExpertFfnParams& p, const Workspace& w, const ExpertWeights& expert,
                 size_t first, size_t last, size_t column, size_t n) {
  const size_t stride = padded_stride(p.inner);
  for (size_t i = first; i < last; ++i) {
    load_row(inner_row(p, i), p.dtype, p.inner, w.x + (i - first) * stride);
  }
  simd().dot(DotBlock{w.x, stride, last - first, element(expert.down, p.w_dtype, column * p.inner),
                      p.w_dtype, p.inner, n, p.inner, w.a, kColumns, expert.down_scales, column},
             *w.dot);
  for (size_t i = first; i < last; ++i) {
    const float weight = p.route_weights[w.order[i]];
    const float* from = w.a + (i - first) * kColumns;
    float* to = w.acc + w.order[i] / p.top_k * kColumns;
    for (size_t j = 0; j < n; ++j) to[j] += weight * from[j];
  }
}

void finish_columns(const ExpertFfnParams& p, const Workspace& w, size_t column, size_t n) {
  for (size_t row = 0; row < p.rows; ++row) {
    float* acc = w.acc + row * kColumns;
    if (p.shared != nullptr) {
      const float* shared = p.shared + row * p.width + column;
      for (size_t j = 0; j < n; ++j) acc[j] += shared[j];
    }
    store_row(acc, p.dtype, n, element(p.y, p.dtype, row * p.width + column));
  }
}

// Calls f(expert, first pair, last pair) for runs of at most kDotRows pairs, experts ascending.
template <class F>
void for_each_run(const ExpertFfnParams& p, const Workspace& w, F f) {
  for (size_t e = 0; e < p.experts; ++e) {
    for (size_t first = w.offsets[e]; first < w.offsets[e + 1]; first += kDotRows) {
      f(p.weights[e], first, std::min(first + kDotRows, w.offsets[e + 1]));
    }
  }
}

}  // namespace

size_t expert_ffn_workspace_bytes(const ExpertFfnParams& params) {
  return params.rows * params.top_k * params.inner * dtype_bytes(params.dtype);
}

void expert_ffn_cpu(const ExpertFfnParams& params, CpuTeam& team) {
  const Workspace w = take_workspace(params, team);
  group_by_expert(params, w);
  const auto [inner_from, inner_to] = team.share(params.inner, kDotColumns);
  for_each_run(params, w, [&, from = inner_from, to = inner_to](
                              const ExpertWeights& expert, size_t first, size_t last) {
    inner_block(params, w, expert, first, last, from, to);
  });
  team.barrier();  // every inner activation is there
  const auto [outer_from, outer_to] = team.share(params.width, kDotColumns);
  for (size_t column = outer_from; column < outer_to; column += kColumns) {
    const size_t n = std::min(kColumns, outer_to - column);
    std::fill_n(w.acc, params.rows * kColumns, 0.0f);
    for_each_run(params, w, [&](const ExpertWeights& expert, size_t first, size_t last) {
      outer_block(params, w, expert, first, last, column, n);
    });
    finish_columns(params, w, column, n);
  }
}

}  // namespace ember
