// Residual add: h = h + x, added in fp32, rounded once.
//
// Journey    program -> [residual_add]; after attention and after the feed-forward
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace ember {

class CpuTeam;

struct ResidualAddParams {
  size_t count = 0;            // values
  void* h = nullptr;           // [count]; kF32 or kBf16
  const void* x = nullptr;     // [count]
  DType dtype = DType::kBf16;  // of both
};

void residual_add_cpu(const ResidualAddParams& params, CpuTeam& team);

}  // namespace ember
