// SwiGLU: y = silu(gate) * up, computed in fp32, rounded once.
//
// Journey    program -> [swiglu]; inside dense and shared feed-forwards
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace ember {

class CpuTeam;

struct SwigluParams {
  size_t rows = 0;
  size_t width = 0;
  const void* gate = nullptr;  // [rows, width]; kF32 or kBf16
  const void* up = nullptr;    // [rows, width]
  void* y = nullptr;           // [rows, width]; may be gate or up
  DType dtype = DType::kBf16;  // of all three
};

void swiglu_cpu(const SwigluParams& params, CpuTeam& team);

}  // namespace ember
