// Expert feed-forward: each token's chosen experts, weighted, summed in fp32 in ascending order of
// expert, the shared expert's output last, rounded once.
//
// Journey    expert_route -> [expert_ffn] -> residual_add
// Invariant  a token's result depends on its own row and route alone, whoever shares its experts
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace ember {

class CpuTeam;

struct ExpertWeights {
  const void* gate = nullptr;  // [m, d]
  const void* up = nullptr;    // [m, d]
  const void* down = nullptr;  // [d, m]
  // Of quantised weights (kernels/simd.h), else null.
  const float* gate_scales = nullptr;
  const float* up_scales = nullptr;
  const float* down_scales = nullptr;
};

struct ExpertFfnParams {
  size_t rows = 0;
  size_t width = 0;                        // d
  size_t inner = 0;                        // m, moe_intermediate_size
  size_t experts = 0;                      // E
  size_t top_k = 0;                        // K
  const void* x = nullptr;                 // [rows, d]; kF32 or kBf16
  DType dtype = DType::kBf16;              // of x, of the inner activations and of y
  const ExpertWeights* weights = nullptr;  // [E]
  DType w_dtype = DType::kBf16;            // kF32, kBf16, kF8E4M3 or kI8
  const int32_t* ids = nullptr;          // [rows, K], ascending in a row
  const float* route_weights = nullptr;  // [rows, K]
  const float* shared = nullptr;         // [rows, d] fp32: the shared expert's output, or null
  void* y = nullptr;                     // [rows, d]
  void* workspace = nullptr;             // expert_ffn_workspace_bytes(...)
};

// Bytes of workspace for up to `rows` tokens (other sizes as in params).
size_t expert_ffn_workspace_bytes(const ExpertFfnParams& params);

void expert_ffn_cpu(const ExpertFfnParams& params, CpuTeam& team);

}  // namespace ember
