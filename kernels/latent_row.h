// Latent row: the bytes of one cached row, for each dtype of a cache.
//
//   kBf16, kF32   C + R values
//   kF8E4M3       C bytes e4m3 | ceil(C / 128) fp32 scales, one for each 128 values | R values bf16
//                 (512 + 16 + 128 = 656 bytes where C is 512 and R 64)
//
// Journey    latent_pack -> [latent_row] -> latent_attention
// Invariant  a value is rounded once; an fp8 row is read back as e4m3 times its scale, in fp32
// Source     the fp8 row of DeepSeek-V3.2's inference code and of FlashMLA
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace ember {

size_t latent_row_bytes(DType dtype, size_t latent_dim, size_t rope_dim);

// row [C + R] fp32 -> to [latent_row_bytes]. A scale is the largest size of its values, at least
// 1e-4, over 448.
void store_latent_row(const float* row, DType dtype, size_t latent_dim, size_t rope_dim,
                      std::byte* to);

void load_latent_row(const std::byte* from, DType dtype, size_t latent_dim, size_t rope_dim,
                     float* row);

// Value `index` of a row, for the plain forms.
double latent_row_value(const std::byte* row, DType dtype, size_t latent_dim, size_t index);

}  // namespace ember
