// Simd lanes: the kernels of simd.h written once over a vector type V of 8 fp32 lanes.
//
// Journey    simd -> [simd_lanes] -> one instantiation for each instruction set
// Invariant  no operation here may round differently in two V's; V lives in an unnamed namespace of
//            its file, so that code for one instruction set never replaces another's
// Not here   V itself (simd_scalar.cc, simd_avx2.cc)
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "kernels/simd.h"

// Small loops over registers are unrolled early, or the compiler keeps the registers in memory.
#if defined(__clang__)
#define EMBER_UNROLL _Pragma("clang loop unroll(full)")
#else
#define EMBER_UNROLL _Pragma("GCC unroll 4")
#endif

namespace ember::lanes {

inline constexpr size_t kLanes = 8;
inline constexpr size_t kRunRows = 8;

template <class V>
struct WeightF32 {
  static constexpr size_t kBytes = 4;
  static V load(const char* from) { return V::load(from); }
  static V load_part(const char* from, size_t n) { return V::load_part(from, n); }
};

template <class V>
struct WeightBf16 {
  static constexpr size_t kBytes = 2;
  static V load(const char* from) { return V::load_bf16(from); }
  static V load_part(const char* from, size_t n) { return V::load_bf16_part(from, n); }
};

// What one tile of R rows and C columns needs to know.
struct Tile {
  const float* x;
  size_t x_stride;
  const char* w;
  size_t w_stride_bytes;
  size_t k;
  float* partial;  // [R, C, 8] lane sums, carried between inner blocks
  bool first;      // inner block: starts from zero
  bool last;       // inner block: the lanes are summed into y
  float* y;
  size_t y_stride;
};

template <class V, size_t R, size_t C>
void finish_tile(const V (&acc)[R][C], const Tile& t) {
  EMBER_UNROLL
  for (size_t c = 0; c < C; ++c) {
    if constexpr (R == 4) {
      float sums[4];
      V::sum4(acc[0][c], acc[1][c], acc[2][c], acc[3][c], sums);
      EMBER_UNROLL
      for (size_t r = 0; r < R; ++r) t.y[r * t.y_stride + c] = sums[r];
    } else {
      EMBER_UNROLL
      for (size_t r = 0; r < R; ++r) t.y[r * t.y_stride + c] = V::sum(acc[r][c]);
    }
  }
}

template <class V, class W, size_t R, size_t C>
void dot_tile(const Tile& t) {
  V acc[R][C];
  EMBER_UNROLL
  for (size_t r = 0; r < R; ++r) {
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) {
      acc[r][c] = t.first ? V::zero() : V::load(t.partial + (r * C + c) * 8);
    }
  }
  const size_t whole = t.k / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    V w[C];
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) {
      w[c] = W::load(t.w + c * t.w_stride_bytes + i * W::kBytes);
    }
    EMBER_UNROLL
    for (size_t r = 0; r < R; ++r) {
      const V x = V::load(t.x + r * t.x_stride + i);
      EMBER_UNROLL
      for (size_t c = 0; c < C; ++c) acc[r][c] = V::fma(x, w[c], acc[r][c]);
    }
  }
  if (whole < t.k) {
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) {
      const char* at = t.w + c * t.w_stride_bytes + whole * W::kBytes;
      const V w = W::load_part(at, t.k - whole);
      EMBER_UNROLL
      for (size_t r = 0; r < R; ++r) {
        const float* x = t.x + r * t.x_stride + whole;
        acc[r][c] = V::fma(V::load_part(x, t.k - whole), w, acc[r][c]);
      }
    }
  }
  if (t.last) {
    finish_tile<V, R, C>(acc, t);
    return;
  }
  EMBER_UNROLL
  for (size_t r = 0; r < R; ++r) {
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) acc[r][c].store(t.partial + (r * C + c) * 8);
  }
}

template <class V, class W, size_t R>
void dot_tile_columns(size_t columns, const Tile& tile) {
  switch (columns) {
    case 1:
      return dot_tile<V, W, R, 1>(tile);
    case 2:
      return dot_tile<V, W, R, 2>(tile);
    case 3:
      return dot_tile<V, W, R, 3>(tile);
    default:
      return dot_tile<V, W, R, 4>(tile);
  }
}

template <class V, class W>
void dot_tile_any(size_t rows, size_t columns, const Tile& tile) {
  switch (rows) {
    case 1:
      return dot_tile_columns<V, W, 1>(columns, tile);
    case 2:
      return dot_tile_columns<V, W, 2>(columns, tile);
    case 3:
      return dot_tile_columns<V, W, 3>(columns, tile);
    default:
      return dot_tile_columns<V, W, 4>(columns, tile);
  }
}

// Internal linkage, since each instruction set compiles its own.
static inline size_t lesser(size_t a, size_t b) { return a < b ? a : b; }

// Few rows: weights stream once from memory, widened in registers.
template <class V, class W>
void dot_few_rows(const DotBlock& b) {
  const size_t stride_bytes = b.w_stride * W::kBytes;
  const size_t step = b.rows < 4 ? 4 : 3;
  for (size_t c = 0; c < b.n; c += step) {
    for (size_t r = 0; r < b.rows; r += 4) {
      const char* w = static_cast<const char*>(b.w) + c * stride_bytes;
      dot_tile_any<V, W>(lesser(4, b.rows - r), lesser(step, b.n - c),
                         Tile{b.x + r * b.x_stride, b.x_stride, w, stride_bytes, b.k, nullptr, true,
                              true, b.y + r * b.y_stride + c, b.y_stride});
    }
  }
}

// One panel of weights in fp32, one inner block of it.
struct Panel {
  const char* w;
  size_t w_stride_bytes;
  size_t column;
  size_t columns;
  size_t inner;
  size_t inner_size;
};

// Rows in runs of 8, so that their inner block and three columns stay in the first-level cache.
template <class V>
void dot_panel(const DotBlock& b, const Panel& p, DotScratch& scratch) {
  for (size_t run = 0; run < b.rows; run += kRunRows) {
    const size_t run_end = lesser(run + kRunRows, b.rows);
    for (size_t c = 0; c < p.columns; c += 3) {
      for (size_t r = run; r < run_end; r += 4) {
        const Tile tile{b.x + r * b.x_stride + p.inner,
                        b.x_stride,
                        p.w + c * p.w_stride_bytes,
                        p.w_stride_bytes,
                        p.inner_size,
                        scratch.partial + (r * kDotColumns + c * 4) * 8,
                        p.inner == 0,
                        p.inner + p.inner_size == b.k,
                        b.y + r * b.y_stride + p.column + c,
                        b.y_stride};
        const size_t rows = lesser(4, run_end - r);
        const size_t columns = lesser(3, p.columns - c);
        if (rows == 4 && columns == 3) {
          dot_tile<V, WeightF32<V>, 4, 3>(tile);
        } else {
          dot_tile_any<V, WeightF32<V>>(rows, columns, tile);
        }
      }
    }
  }
}

// Up to kDotRows rows: weights are widened once for all of them.
template <class V>
void dot_many_rows(const DotBlock& b, DotScratch& scratch) {
  const size_t w_bytes = b.w_dtype == DType::kBf16 ? 2 : 4;
  for (size_t column = 0; column < b.n; column += kDotColumns) {
    const size_t columns = lesser(kDotColumns, b.n - column);
    for (size_t inner = 0; inner < b.k; inner += kDotInner) {
      const size_t size = lesser(kDotInner, b.k - inner);
      const char* w = static_cast<const char*>(b.w) + (column * b.w_stride + inner) * w_bytes;
      size_t stride_bytes = b.w_stride * w_bytes;
      if (b.w_dtype == DType::kBf16) {
        for (size_t c = 0; c < columns; ++c) {
          V::widen(w + c * stride_bytes, scratch.panel + c * kDotInner, size);
        }
        w = reinterpret_cast<const char*>(scratch.panel);
        stride_bytes = kDotInner * sizeof(float);
      }
      dot_panel<V>(b, Panel{w, stride_bytes, column, columns, inner, size}, scratch);
    }
  }
}

template <class V>
void dot(const DotBlock& block, DotScratch& scratch) {
  if (block.rows < 8) {
    if (block.w_dtype == DType::kBf16) return dot_few_rows<V, WeightBf16<V>>(block);
    return dot_few_rows<V, WeightF32<V>>(block);
  }
  for (size_t r = 0; r < block.rows; r += kDotRows) {
    DotBlock part = block;
    part.x += r * block.x_stride;
    part.y += r * block.y_stride;
    part.rows = lesser(kDotRows, block.rows - r);
    dot_many_rows<V>(part, scratch);
  }
}

template <class V, size_t R, size_t C>
void value_tile(const ValueBlock& b, size_t r, size_t j) {
  V acc[R][C];
  EMBER_UNROLL
  for (size_t i = 0; i < R; ++i) {
    const float* from = b.acc + (r + i) * b.acc_stride + j;
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) acc[i][c] = V::load(from + c * 8);
  }
  for (size_t t = 0; t < b.tokens; ++t) {
    V v[C];
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) v[c] = V::load(b.v + t * b.v_stride + j + c * 8);
    EMBER_UNROLL
    for (size_t i = 0; i < R; ++i) {
      const V p = V::broadcast(b.p[(r + i) * b.p_stride + t]);
      EMBER_UNROLL
      for (size_t c = 0; c < C; ++c) acc[i][c] = V::fma(p, v[c], acc[i][c]);
    }
  }
  EMBER_UNROLL
  for (size_t i = 0; i < R; ++i) {
    float* to = b.acc + (r + i) * b.acc_stride + j;
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) acc[i][c].store(to + c * 8);
  }
}

// The last columns, fewer than 8.
template <class V>
void value_edge(const ValueBlock& b, size_t j) {
  const size_t n = b.width - j;
  for (size_t r = 0; r < b.rows; ++r) {
    V acc = V::load_part(b.acc + r * b.acc_stride + j, n);
    for (size_t t = 0; t < b.tokens; ++t) {
      const V p = V::broadcast(b.p[r * b.p_stride + t]);
      acc = V::fma(p, V::load_part(b.v + t * b.v_stride + j, n), acc);
    }
    acc.store_part(b.acc + r * b.acc_stride + j, n);
  }
}

template <class V, size_t C>
void value_columns(const ValueBlock& b, size_t j) {
  size_t r = 0;
  for (; r + 4 <= b.rows; r += 4) value_tile<V, 4, C>(b, r, j);
  for (; r < b.rows; ++r) value_tile<V, 1, C>(b, r, j);
}

template <class V>
void accumulate(const ValueBlock& block) {
  size_t j = 0;
  for (; j + 24 <= block.width; j += 24) value_columns<V, 3>(block, j);
  for (; j + 8 <= block.width; j += 8) value_columns<V, 1>(block, j);
  if (j < block.width) value_edge<V>(block, j);
}

// exp by 2^n * e^r: r in [-ln2/2, ln2/2], a polynomial of degree 6 fitted by the Taylor series (its
// error there is below half an ulp of fp32), and two exact powers of two, so that the result
// underflows and overflows as it should. A NaN stays a NaN.
template <class V>
V exp_lanes(V x) {
  x = V::max(V::broadcast(-110.0f), x);
  x = V::min(V::broadcast(90.0f), x);
  const V magic = V::broadcast(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const V shifted = V::fma(x, V::broadcast(1.44269504f), magic);
  const V n = V::sub(shifted, magic);
  V r = V::fma(n, V::broadcast(-0.693145752f), x);
  r = V::fma(n, V::broadcast(-1.42860677e-6f), r);
  V p = V::broadcast(1.0f / 5040.0f);
  p = V::fma(p, r, V::broadcast(1.0f / 720.0f));
  p = V::fma(p, r, V::broadcast(1.0f / 120.0f));
  p = V::fma(p, r, V::broadcast(1.0f / 24.0f));
  p = V::fma(p, r, V::broadcast(1.0f / 6.0f));
  p = V::fma(p, r, V::broadcast(0.5f));
  p = V::fma(p, r, V::broadcast(1.0f));
  p = V::fma(p, r, V::broadcast(1.0f));
  return V::times_power_of_two(p, shifted);
}

template <class V>
V sigmoid_lanes(V x) {
  const V one = V::broadcast(1.0f);
  return V::div(one, V::add(one, exp_lanes(V::sub(V::zero(), x))));
}

template <class V>
float scale_max(float* x, size_t n, float factor) {
  const V f = V::broadcast(factor);
  V largest = V::broadcast(x[0] * factor);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V product = V::mul(V::load(x + i), f);
    product.store(x + i);
    largest = V::max(largest, product);
  }
  float lanes[kLanes];
  largest.store(lanes);
  float result = lanes[0];
  for (size_t j = 1; j < kLanes; ++j) result = result > lanes[j] ? result : lanes[j];
  for (; i < n; ++i) {
    x[i] *= factor;
    result = result > x[i] ? result : x[i];
  }
  return result;
}

template <class V>
float exp_sum(float* x, size_t n, float shift) {
  const V s = V::broadcast(shift);
  V sum = V::zero();
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V e = exp_lanes(V::sub(V::load(x + i), s));
    e.store(x + i);
    sum = V::add(sum, e);
  }
  if (i < n) {
    const V e = exp_lanes(V::sub(V::load_part(x + i, n - i), s));
    e.store_part(x + i, n - i);
    sum = V::add(sum, V::load_part(x + i, n - i));
  }
  return V::sum(sum);
}

template <class V>
void silu_mul(const float* gate, const float* up, float* y, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V g = V::load(gate + i);
    V::mul(V::mul(g, sigmoid_lanes(g)), V::load(up + i)).store(y + i);
  }
  if (i < n) {
    const V g = V::load_part(gate + i, n - i);
    V::mul(V::mul(g, sigmoid_lanes(g)), V::load_part(up + i, n - i)).store_part(y + i, n - i);
  }
}

template <class V>
void sigmoid(float* x, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sigmoid_lanes(V::load(x + i)).store(x + i);
  if (i < n) sigmoid_lanes(V::load_part(x + i, n - i)).store_part(x + i, n - i);
}

template <class V>
constexpr Simd make_simd(const char* family) {
  return Simd{family,       V::widen,   V::narrow,   dot<V>,    accumulate<V>,
              scale_max<V>, exp_sum<V>, silu_mul<V>, sigmoid<V>};
}

}  // namespace ember::lanes
