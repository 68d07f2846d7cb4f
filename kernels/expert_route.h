// Expert route: which experts a token goes to, and with what weights. All in fp32.
//
// Journey    program -> [expert_route] -> expert_ffn
// Invariant  ties go to the lowest expert; chosen experts are listed in ascending order
// Source     DeepSeek-V3 paper, section 2.1.2 (sigmoid, bias only for the choice, groups);
//            DeepSeek-V2's published modelling code (softmax)
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace ember {

class CpuTeam;

// kSigmoid (V3): a group's score is the sum of its two best experts; weights are normalised where
// asked, and always scaled. kSoftmax (V2): a group's score is its best expert; weights are either
// normalised or scaled.
enum class RouteScore : uint8_t { kSigmoid = 1, kSoftmax = 2 };

struct ExpertRouteParams {
  RouteScore score = RouteScore::kSigmoid;
  size_t rows = 0;
  size_t width = 0;         // d
  size_t experts = 0;       // E
  size_t top_k = 0;         // K
  size_t groups = 1;        // n_group, divides E; 1: no group stage
  size_t top_groups = 1;    // topk_group
  bool normalize = true;    // norm_topk_prob
  float scale = 1;          // routed_scaling_factor
  const void* x = nullptr;  // [rows, d]; kF32 or kBf16
  DType x_dtype = DType::kBf16;
  const void* w = nullptr;  // [E, d]; kF32 or kBf16
  DType w_dtype = DType::kBf16;
  const float* bias = nullptr;  // [E], or null: e_score_correction_bias
  int32_t* ids = nullptr;       // out [rows, K], ascending in a row
  float* weights = nullptr;     // out [rows, K]
};

void expert_route_cpu(const ExpertRouteParams& params, CpuTeam& team);

// The choice for one row of router logits [E]: pure, shared by the fast and the reference forward.
// Reads params' scalars and bias; writes ids [K] and weights [K].
void choose_experts(const ExpertRouteParams& params, const float* logits, int32_t* ids,
                    float* weights);

}  // namespace ember
