// Weight conversion: values from one dtype to another, and the key part of kv_b for the absorbed
// form.
//
// Journey    checkpoint bytes -> [weight_convert] -> weights
// Invariant  each value is rounded at most once; sources may be unaligned
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace ember {

// fp16 bits to fp32, exactly.
float half_to_float(uint16_t bits);

// `from` kBf16, kF16 or kF32; `to` kBf16 or kF32.
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
