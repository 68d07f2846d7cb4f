// Weight conversion: values from one dtype to another, int8 by row, and the key part of kv_b for
// the absorbed form.
//
// Journey    checkpoint bytes -> [weight_convert] -> weights
// Invariant  each value is rounded at most once (after its scale); sources may be unaligned
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace ember {

// A matrix [rows, cols] or a vector, as the kernels read it; `scales` where the dtype is kF8E4M3
// ([ceil(rows / 128), ceil(cols / 128)]) or kI8 ([rows]).
struct Weight {
  const void* data = nullptr;
  DType dtype = DType::kBf16;
  size_t rows = 0;
  size_t cols = 0;
  const float* scales = nullptr;
};

// Row `row` of a matrix of any dtype, in fp32: to [cols].
void widen_row(const Weight& weight, size_t row, float* to);

// The matrix in `dtype` (kBf16 or kF32), scales applied: out [rows, cols].
void widen_matrix(const Weight& weight, DType dtype, void* out);

// The matrix as int8 with a scale for each row, the row's largest size over 127: a value is off by
// at most half its row's scale (and the roundings of fp32). out [rows, cols], scales [rows].
// Errors: false where a value is no finite number.
bool quantize_rows(const Weight& weight, int8_t* out, float* scales);

// fp16 bits to fp32, exactly.
float half_to_float(uint16_t bits);

// `from` kBf16, kF16, kF32 or kF8E8M0; `to` kBf16 or kF32.
void convert_values(const void* from, DType from_dtype, void* to, DType to_dtype, size_t count);

struct KeyAbsorbShape {
  size_t heads = 0;
  size_t nope_dim = 0;    // N
  size_t value_dim = 0;   // V
  size_t latent_dim = 0;  // C
};

// kv_b [H, N + V, C] -> out [H, C, N]: the first N rows of each head, transposed.
void transpose_key_part(const KeyAbsorbShape& shape, const void* kv_b, DType dtype, void* out);

}  // namespace ember
