// Layer program: the operations of one decoder layer, appended to a step's program.
//
// Journey    forward -> [layer_program] -> program
// Invariant  each operation reads only what an earlier one of the step wrote, or weights and rows
// Source     DeepSeek-V2 paper, section 2.1 (MLA); DeepSeek-V3 paper, section 2.1 (experts)
#pragma once

#include <cstddef>

#include "engine/model/activations.h"
#include "engine/model/step_inputs.h"
#include "engine/model/weights.h"
#include "kernels/program.h"

namespace ember {

// What all layers of a step share.
struct StepContext {
  const ModelConfig* config = nullptr;
  const Activations* act = nullptr;
  StepArrays in;                      // on the device
  const float* rope_table = nullptr;  // [positions, R/2, 2]
  float softmax_scale = 1;
  DType precision = DType::kBf16;
  size_t rows = 0;
  size_t absorb_rows = 0;  // the first of them, in the absorbed form; the rest in the naive one
  Program* program = nullptr;
};

// The kernels' name of a config's router.
RouteScore route_score(const ModelConfig& config);

// y = x * w^T with rows packed; y in `y_dtype`.
MatmulParams linear_op(const StepContext& step, const void* x, const Weight& w, void* y,
                       DType y_dtype);
// y = norm(x), both in the step's precision and of `width`.
RmsNormParams norm_op(const StepContext& step, const void* x, const Weight& weight, float eps,
                      void* y);

// Appends h += Attn(norm(h)), which also writes the layer's cached rows, and h += FFN(norm(h)).
void add_layer(const StepContext& step, const LayerWeights& layer, const LatentCacheView& cache);

}  // namespace ember
