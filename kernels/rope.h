// RoPE: rotates interleaved pairs (x[2i], x[2i+1]) of the query's RoPE part, in place.
//
// Journey    program -> [rope]; the key's RoPE part is rotated by latent_pack with the same table
// Source     DeepSeek-V2 paper, section 2.1.3; layout as stored in DeepSeek's checkpoints
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace ember {

class CpuTeam;

struct RopeParams {
  size_t rows = 0;
  size_t heads = 0;
  size_t rope_dim = 0;     // R, even
  void* x = nullptr;       // first RoPE value of head 0 of row 0; kF32 or kBf16
  size_t x_stride = 0;     // elements from row to row
  size_t head_stride = 0;  // elements from head to head
  DType dtype = DType::kBf16;
  const int32_t* positions = nullptr;  // [rows], each in [0, table rows)
  const float* table = nullptr;        // [positions, R/2, 2]: cos, sin
};

void rope_cpu(const RopeParams& params, CpuTeam& team);

// Rotates one row of R values by `table_row` [R/2, 2]: what rope and latent_pack share.
void rope_row(float* values, const float* table_row, size_t rope_dim);

// Fills `table` [positions, R/2, 2] from inverse frequencies [R/2]: the angle is one fp32 product,
// cos and sin are taken in double, scaled by `amplitude` and rounded to fp32.
void fill_rope_table(std::span<const float> inv_freq, size_t positions, float amplitude,
                     float* table);

}  // namespace ember
