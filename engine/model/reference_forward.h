// Reference forward: the model in plain fp32 loops, from scratch for every call. Slow and readable.
//
// Journey    none; the fast path is compared with it
// Source     DeepSeek-V2 and V3 papers; docs/architecture.md, section 6
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/weights.h"
#include "kernels/latent_attention.h"

namespace ember {

struct ReferenceOutput {
  std::vector<float> logits;                // [T, vocab]
  std::vector<std::vector<float>> latents;  // per layer [T, C + R]: what MLA caches
};

// Weights are widened to fp32; all arithmetic is fp32 with double accumulators.
ReferenceOutput reference_forward(const ModelWeights& weights, std::span<const int32_t> tokens,
                                  AttentionForm form);

}  // namespace ember
