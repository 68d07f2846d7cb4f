// Gather rows: out[i] = table[ids[i]]; the embedding, and the choice of rows that get logits.
//
// Journey    program -> [gather_rows]; first and last step of a forward pass
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace ember {

class CpuTeam;

struct GatherRowsParams {
  size_t rows = 0;               // ids
  size_t width = 0;              // values a row
  const int32_t* ids = nullptr;  // [rows], each in [0, table_rows)
  size_t table_rows = 0;
  const void* table = nullptr;  // [table_rows, width]; kF32 or kBf16, unaligned allowed
  DType table_dtype = DType::kBf16;
  void* out = nullptr;  // [rows, width]; kF32 or kBf16
  DType out_dtype = DType::kBf16;
};

void gather_rows_cpu(const GatherRowsParams& params, CpuTeam& team);

}  // namespace ember
