// Activations: the device memory that a step's operations pass values through, allocated once.
//
// Journey    forward -> [activations] -> layer_program
// Owns       every intermediate of a step of max_rows tokens, and the logits and ids that come down
// Invariant  every layer uses the same buffers again: nothing outlives its layer but `hidden`
#pragma once

#include "base/result.h"
#include "engine/model/forward.h"
#include "engine/model/weights.h"
#include "kernels/device.h"

namespace ember {

struct Activations {
  // T rows, in options.precision unless said otherwise.
  Buffer hidden;            // [T, d]: the residual stream
  Buffer normed;            // [T, d]
  Buffer branch;            // [T, d]: what is added to the residual stream
  Buffer query_low;         // [T, Q]
  Buffer query_low_normed;  // [T, Q]
  Buffer query;             // [T, H, N + R] fp32
  Buffer query_latent;      // [T, H, C] fp32 (absorbed form)
  Buffer mixed_latent;      // [T, H, C] fp32 (absorbed form)
  Buffer values;            // [T, H, V]
  Buffer latent;            // [T, C + R] fp32: rounded once, when it becomes a cached row
  Buffer gate;              // [T, inner]
  Buffer up;                // [T, inner]
  Buffer shared;            // [T, d] fp32: the shared expert's output
  Buffer route_ids;         // [T, K] int32
  Buffer route_weights;     // [T, K] fp32
  Buffer expert_work;
  Buffer last_hidden;  // [logit rows, d]
  Buffer last_normed;  // [logit rows, d]
  Buffer logits;       // [logit rows, vocab] fp32
  Buffer sampled;      // [sequences] int32
  Buffer logits_down;  // pinned copies of the two
  Buffer sampled_down;
};

// The expert operation's parameters that do not change from layer to layer.
ExpertFfnParams expert_ffn_shape(const ModelConfig& config, DType precision, size_t rows);

// Errors: kCapacity.
Result<Activations> allocate_activations(const ModelWeights& weights, const ForwardOptions& options,
                                         Device& device);

}  // namespace ember
