// Simd lanes, inner products: tiles of rows and columns over weights of every dtype.
//
// Journey    simd_lanes -> [simd_lanes_dot]
// Invariant  lane j of 8 sums the products k = j mod 8 in ascending order, whatever the tile, so a
//            tile's shape changes no bit; a scaled weight is value times scale, rounded once
// Not here   V itself (simd_scalar.cc, simd_avx2.cc)
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "kernels/simd.h"

// Small loops over registers are unrolled early, or the compiler keeps the registers in memory.
#if defined(__clang__)
#define EMBER_UNROLL _Pragma("clang loop unroll(full)")
#else
#define EMBER_UNROLL _Pragma("GCC unroll 8")
#endif

namespace ember::lanes {

inline constexpr size_t kLanes = 8;
inline constexpr size_t kRunRows = 8;

// Internal linkage, since each instruction set compiles its own.
static inline size_t lesser(size_t a, size_t b) { return a < b ? a : b; }

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

// Quantised weights: the value as it is stored; its scale comes from outside.
template <class V>
struct WeightE4m3 {
  static V load(const char* from) { return V::load_e4m3(from); }
  static V load_part(const char* from, size_t n) { return V::load_e4m3_part(from, n); }
};

template <class V>
struct WeightI8 {
  static V load(const char* from) { return V::load_i8(from); }
  static V load_part(const char* from, size_t n) { return V::load_i8_part(from, n); }
};

// Where a quantised matrix's scales change: fp8 every 128 rows and columns, int8 every row.
struct BlockScales {
  const float* values;
  size_t rows;        // rows that share a scale
  size_t columns;     // columns that share one
  size_t row_scales;  // scales along a row
  const float* row(size_t w_row) const { return values + w_row / rows * row_scales; }
};

static inline BlockScales block_scales(const DotBlock& b) {
  if (b.w_dtype == DType::kI8) return {b.w_scales, 1, b.k, 1};
  return {b.w_scales, kScaleBlock, kScaleBlock, (b.k + kScaleBlock - 1) / kScaleBlock};
}

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

// A tile of quantised weights, whole rows of one byte a value: scales change at fixed places of k.
template <class V, class W, size_t R, size_t C>
void scaled_tile(const Tile& t, const BlockScales& s, size_t row) {
  V acc[R][C];
  EMBER_UNROLL
  for (size_t r = 0; r < R; ++r) {
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) acc[r][c] = V::zero();
  }
  for (size_t block = 0; block < s.row_scales; ++block) {
    const size_t begin = block * s.columns;
    const size_t end = lesser(begin + s.columns, t.k);
    V scale[C];
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) scale[c] = V::broadcast(s.row(row + c)[block]);
    const size_t whole = begin + (end - begin) / kLanes * kLanes;
    for (size_t i = begin; i < whole; i += kLanes) {
      V w[C];
      EMBER_UNROLL
      for (size_t c = 0; c < C; ++c) {
        w[c] = V::mul(W::load(t.w + c * t.w_stride_bytes + i), scale[c]);
      }
      EMBER_UNROLL
      for (size_t r = 0; r < R; ++r) {
        const V x = V::load(t.x + r * t.x_stride + i);
        EMBER_UNROLL
        for (size_t c = 0; c < C; ++c) acc[r][c] = V::fma(x, w[c], acc[r][c]);
      }
    }
    if (whole == end) continue;
    EMBER_UNROLL
    for (size_t c = 0; c < C; ++c) {
      const char* at = t.w + c * t.w_stride_bytes + whole;
      const V w = V::mul(W::load_part(at, end - whole), scale[c]);
      EMBER_UNROLL
      for (size_t r = 0; r < R; ++r) {
        const float* x = t.x + r * t.x_stride + whole;
        acc[r][c] = V::fma(V::load_part(x, end - whole), w, acc[r][c]);
      }
    }
  }
  finish_tile<V, R, C>(acc, t);
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

template <class V, class W, size_t R>
void scaled_tile_columns(size_t columns, const Tile& tile, const BlockScales& s, size_t row) {
  switch (columns) {
    case 1:
      return scaled_tile<V, W, R, 1>(tile, s, row);
    case 2:
      return scaled_tile<V, W, R, 2>(tile, s, row);
    default:
      return scaled_tile<V, W, R, 3>(tile, s, row);
  }
}

// Few rows of quantised weights: the same walk, scaled in registers.
template <class V, class W>
void dot_few_rows_scaled(const DotBlock& b) {
  const BlockScales s = block_scales(b);
  for (size_t c = 0; c < b.n; c += 3) {
    const size_t columns = lesser(3, b.n - c);
    for (size_t r = 0; r < b.rows; r += 4) {
      const char* w = static_cast<const char*>(b.w) + c * b.w_stride;
      const Tile tile{b.x + r * b.x_stride, b.x_stride, w, b.w_stride, b.k, nullptr, true,
                      true, b.y + r * b.y_stride + c, b.y_stride};
      const size_t row = b.w_row + c;
      switch (lesser(4, b.rows - r)) {
        case 1:
          scaled_tile_columns<V, W, 1>(columns, tile, s, row);
          break;
        case 2:
          scaled_tile_columns<V, W, 2>(columns, tile, s, row);
          break;
        case 3:
          scaled_tile_columns<V, W, 3>(columns, tile, s, row);
          break;
        default:
          scaled_tile_columns<V, W, 4>(columns, tile, s, row);
      }
    }
  }
}

// y[i] = value[i] * scale
template <class V, class W>
void widen_scaled(const void* from, float scale, float* to, size_t n) {
  const char* at = static_cast<const char*>(from);
  const V s = V::broadcast(scale);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) V::mul(W::load(at + i), s).store(to + i);
  if (i < n) V::mul(W::load_part(at + i, n - i), s).store_part(to + i, n - i);
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

// Where column `column` of the weights has its value `inner`.
static inline const char* weight_address(const DotBlock& b, size_t column, size_t inner) {
  return static_cast<const char*>(b.w) + (column * b.w_stride + inner) * dtype_bytes(b.w_dtype);
}

// An inner block of one column, in fp32.
template <class V>
void widen_column(const DotBlock& b, size_t column, size_t inner, size_t size, float* to) {
  const char* from = weight_address(b, column, inner);
  if (b.w_dtype == DType::kBf16) return V::widen(from, to, size);
  const BlockScales s = block_scales(b);
  const float* scales = s.row(b.w_row + column);
  for (size_t i = 0; i < size;) {
    const size_t block = (inner + i) / s.columns;
    const size_t n = lesser((block + 1) * s.columns - inner, size) - i;
    if (b.w_dtype == DType::kI8) {
      widen_scaled<V, WeightI8<V>>(from + i, scales[block], to + i, n);
    } else {
      widen_scaled<V, WeightE4m3<V>>(from + i, scales[block], to + i, n);
    }
    i += n;
  }
}

// Up to kDotRows rows: weights are widened once for all of them.
template <class V>
void dot_many_rows(const DotBlock& b, DotScratch& scratch) {
  for (size_t column = 0; column < b.n; column += kDotColumns) {
    const size_t columns = lesser(kDotColumns, b.n - column);
    for (size_t inner = 0; inner < b.k; inner += kDotInner) {
      const size_t size = lesser(kDotInner, b.k - inner);
      const char* w = weight_address(b, column, inner);
      size_t stride_bytes = b.w_stride * sizeof(float);
      if (b.w_dtype != DType::kF32) {
        for (size_t c = 0; c < columns; ++c) {
          widen_column<V>(b, column + c, inner, size, scratch.panel + c * kDotInner);
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
    switch (block.w_dtype) {
      case DType::kBf16:
        return dot_few_rows<V, WeightBf16<V>>(block);
      case DType::kF8E4M3:
        return dot_few_rows_scaled<V, WeightE4m3<V>>(block);
      case DType::kI8:
        return dot_few_rows_scaled<V, WeightI8<V>>(block);
      default:
        return dot_few_rows<V, WeightF32<V>>(block);
    }
  }
  for (size_t r = 0; r < block.rows; r += kDotRows) {
    DotBlock part = block;
    part.x += r * block.x_stride;
    part.y += r * block.y_stride;
    part.rows = lesser(kDotRows, block.rows - r);
    dot_many_rows<V>(part, scratch);
  }
}

}  // namespace ember::lanes
