// RMS norm: y = w * x / sqrt(mean(x^2) + eps), computed in fp32, rounded once.
//
// Journey    program -> [rms_norm]; before attention, before the feed-forward, on the query latent
// Invariant  one reduction scheme for every row, whatever the number of rows or workers
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace ember {

class CpuTeam;

struct RmsNormParams {
  size_t rows = 0;
  size_t width = 0;
  const void* x = nullptr;  // [rows, width], row stride x_stride; kF32 or kBf16
  size_t x_stride = 0;
  const void* weight = nullptr;  // [width]; kF32 or kBf16, unaligned allowed
  DType weight_dtype = DType::kBf16;
  float eps = 1e-6f;
  void* y = nullptr;  // [rows, width], row stride y_stride; the dtype of x
  size_t y_stride = 0;
  DType dtype = DType::kBf16;  // of x and y
};

void rms_norm_cpu(const RmsNormParams& params, CpuTeam& team);

}  // namespace ember
