// Simd: the arithmetic under all operations, in one form for each instruction set.
//
// Journey    the operations' *_cpu.cc -> [simd] -> simd_avx512.cc | simd_avx2.cc | simd_scalar.cc
// Invariant  every level gives the same bits: 8 fp32 lanes along the inner size (lane j sums the
//            products k = j mod 8 by fused multiply-add), then one fixed tree; an output element
//            depends neither on its neighbours nor on how a call is cut in blocks
// Threads    any; set_simd_level_for_test only while nothing computes
// Not here   who computes which part (the operations)
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace ember {

// Rows and columns of one pass of `dot`; larger blocks are cut, with the same result.
inline constexpr size_t kDotRows = 64;
inline constexpr size_t kDotColumns = 24;
inline constexpr size_t kDotInner = 512;

// Rows and columns of a quantised matrix that share one scale (fp8).
inline constexpr size_t kScaleBlock = 128;

// Room for a widened panel of weights and for lane sums that wait between two inner blocks.
struct alignas(64) DotScratch {
  float panel[kDotColumns * kDotInner];
  float partial[kDotRows * kDotColumns * 8];
};

// y[r, c] = x[r] . w[c]
struct DotBlock {
  const float* x = nullptr;  // [rows, k], row stride x_stride
  size_t x_stride = 0;
  size_t rows = 0;
  // [n, k], row stride w_stride, unaligned allowed; kF32, kBf16, kF8E4M3 or kI8. A quantised
  // weight is its value times its scale, in fp32, rounded once.
  const void* w = nullptr;
  DType w_dtype = DType::kBf16;
  size_t w_stride = 0;  // elements
  size_t n = 0;
  size_t k = 0;
  float* y = nullptr;  // [rows, n], row stride y_stride
  size_t y_stride = 0;
  // Of the whole matrix, of which `w` begins at row `w_row` and has k columns.
  // kF8E4M3: [ceil(rows / 128), ceil(k / 128)]; kI8: [rows]; else null.
  const float* w_scales = nullptr;
  size_t w_row = 0;
};

// acc[r, j] = acc[r, j] + p[r, 0] * v[0, j] + p[r, 1] * v[1, j] + ..., tokens in ascending order.
struct ValueBlock {
  const float* p = nullptr;  // [rows, tokens], row stride p_stride
  size_t p_stride = 0;
  size_t rows = 0;
  const float* v = nullptr;  // [tokens, width], row stride v_stride
  size_t v_stride = 0;
  size_t tokens = 0;
  size_t width = 0;
  float* acc = nullptr;  // [rows, width], row stride acc_stride
  size_t acc_stride = 0;
};

struct Simd {
  const char* family;
  void (*widen)(const void* from_bf16, float* to, size_t n);
  void (*narrow)(const float* from, void* to_bf16, size_t n);
  // to[i] = from[i] * scale
  void (*widen_e4m3)(const void* from, float scale, float* to, size_t n);
  void (*dot)(const DotBlock& block, DotScratch& scratch);
  void (*accumulate)(const ValueBlock& block);
  // x[i] *= factor; returns the largest product (n > 0).
  float (*scale_max)(float* x, size_t n, float factor);
  // x[i] = exp(x[i] - shift); returns their sum.
  float (*exp_sum)(float* x, size_t n, float shift);
  // y[i] = gate[i] / (1 + exp(-gate[i])) * up[i]; y may be gate or up.
  void (*silu_mul)(const float* gate, const float* up, float* y, size_t n);
  void (*sigmoid)(float* x, size_t n);
};

const Simd& scalar_simd();
// Null where the program was built for, or runs on, a CPU without AVX2 and FMA.
const Simd* avx2_simd();
// Null where either has no AVX-512 (F, BW, DQ, VL) beside it.
const Simd* avx512_simd();

// The level in use: the best that this CPU has.
const Simd& simd();
// Forces a level, null: the best again.
void set_simd_level_for_test(const Simd* level);

}  // namespace ember
