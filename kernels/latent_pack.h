// Latent pack: makes the row that MLA caches, [c after its norm | RoPE key after rotation], and
// writes it to its place in the block pool.
//
// Journey    kv_a projection -> [latent_pack] -> device_pool (the row every tier will carry)
// Invariant  the row is written once, rounded once, and depends on its token's projection alone
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace ember {

class CpuTeam;

// Where the cached rows of this layer are: slot s of the pool begins at pool + s * slot_bytes, and
// token j of a block, in this layer, at + layer_offset + j * row_bytes.
struct LatentCacheView {
  std::byte* pool = nullptr;
  size_t slot_bytes = 0;
  size_t layer_offset = 0;
  size_t row_bytes = 0;
  DType dtype = DType::kBf16;  // kBf16, kF32, or kF8E4M3 for the rows of latent_row.h
  size_t block_tokens = 64;
  const int32_t* block_tables = nullptr;  // [sequences, table_stride]: slot of each block
  size_t table_stride = 0;

  std::byte* row(int32_t sequence, int32_t position) const {
    const auto p = static_cast<size_t>(position);
    const int32_t slot =
        block_tables[static_cast<size_t>(sequence) * table_stride + p / block_tokens];
    return pool + static_cast<size_t>(slot) * slot_bytes + layer_offset +
           p % block_tokens * row_bytes;
  }
};

struct LatentPackParams {
  size_t rows = 0;
  size_t latent_dim = 0;    // C
  size_t rope_dim = 0;      // R
  const void* u = nullptr;  // [rows, C + R] = x * Wkv_a^T; kF32 or kBf16
  DType u_dtype = DType::kBf16;
  const void* norm_weight = nullptr;  // [C]
  DType norm_dtype = DType::kBf16;
  float eps = 1e-6f;
  const float* rope_table = nullptr;   // [positions, R/2, 2]
  const int32_t* positions = nullptr;  // [rows]
  const int32_t* sequences = nullptr;  // [rows]: row of block_tables
  LatentCacheView cache;
};

void latent_pack_cpu(const LatentPackParams& params, CpuTeam& team);

}  // namespace ember
