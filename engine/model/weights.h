// Weights: a checkpoint's tensors by their place in the model, in the dtype of the compute mode.
//
// Journey    checkpoint -> [weights] -> forward
// Owns       what had to be converted or transposed; everything else is used as mapped
// Invariant  every tensor of the model is there and has the configured shape; unknown tensors are
//            refused by name (layers at and beyond the configured number are skipped)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/model_config.h"
#include "engine/model/weight_convert.h"
#include "kernels/device.h"
#include "kernels/expert_ffn.h"

namespace ember {

struct LayerWeights {
  Weight attention_norm;  // [d]
  Weight q;               // [H(N+R), d] without q_lora
  Weight q_a;             // [Q, d]
  Weight q_a_norm;        // [Q]
  Weight q_b;             // [H(N+R), Q]
  Weight kv_a;            // [C+R, d]
  Weight kv_a_norm;       // [C]
  Weight kv_b;            // [H(N+V), C]
  Weight key_absorb;      // [H, C, N]: W_UK transposed for each head (absorbed form)
  Weight o;               // [d, H V]
  Weight ffn_norm;        // [d]
  bool moe = false;
  Weight gate, up, down;  // dense, or the shared expert
  bool has_shared = false;
  Weight router;                       // [E, d]
  std::vector<float> router_bias;      // [E] or empty
  std::vector<ExpertWeights> experts;  // [E]
  DType expert_dtype = DType::kBf16;
};

struct ModelWeights {
  ModelConfig config;
  Weight embedding;   // [vocab, d]
  Weight final_norm;  // [d]
  Weight head;        // [vocab, d]
  std::vector<LayerWeights> layers;
  std::shared_ptr<Checkpoint> checkpoint;  // keeps the mapping alive
  std::vector<Buffer> owned;               // converted or transposed tensors
};

// What the linear layers are held in. kStored: as the checkpoint has them, fp8 in its blocks (the
// kernels apply the scales). kInt8: int8 with a scale for each row of outputs, made at load; the
// embedding, the head, the router, kv_b and the norms stay as they are.
enum class WeightForm : uint8_t { kStored = 1, kInt8 = 2 };

// `precision` kBf16: matrices are bf16 (others are rounded). kF32: bf16 and fp32 are kept as they
// are (the kernels widen bf16 exactly), fp16 becomes fp32. fp8 stays fp8 in both; kv_b alone, which
// the absorbed form takes apart, becomes `precision`.
// Errors: kInvalidArgument and kUnsupported, naming the tensor; kCapacity.
Result<std::unique_ptr<ModelWeights>> load_weights(std::shared_ptr<Checkpoint> checkpoint,
                                                   const ModelConfig& config, DType precision,
                                                   Device& device,
                                                   const std::function<void(double)>& progress,
                                                   WeightForm form = WeightForm::kStored);

}  // namespace ember
