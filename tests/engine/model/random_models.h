// Random models: small configs that differ in every dimension that code could mix up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"

namespace ember::testing {

// Heads odd, N != V, C no multiple of a vector. `seed` chooses the variant: q_lora or not, YaRN
// (with mscale != mscale_all_dim) or not, groups or not, shared experts 0 to 2, tied or not. From
// seed 4 on: softmax routing, a deep dense prefix with experts in every second layer, one head, and
// sizes beyond one block of fp8 weights that no block divides.
inline ModelConfig random_model_config(uint64_t seed) {
  ModelConfig config;
  config.model_type = "deepseek_v3";
  config.vocab_size = 97;
  config.hidden = 56;
  config.layers = 3;
  config.heads = seed % 3 == 0 ? 5 : 3;
  config.q_lora_rank = seed % 2 == 0 ? 36 : 0;
  config.kv_lora_rank = seed % 3 == 1 ? 40 : 52;
  config.nope_dim = 24;
  config.rope_dim = 12;
  config.value_dim = seed % 2 == 0 ? 20 : 28;
  config.dense_inner = 72;
  config.moe_inner = 28;
  config.routed_experts = 12;
  config.shared_experts = static_cast<uint32_t>(seed % 3);
  config.experts_per_token = 3;
  config.first_dense_layers = 1;
  config.expert_groups = seed % 2 == 0 ? 4 : 1;
  config.top_groups = seed % 2 == 0 ? 2 : 1;
  config.normalize_routes = seed % 4 != 3;
  config.routed_scale = 1.7f;
  config.norm_eps = 1e-5f;
  config.max_positions = 1024;
  config.tied_head = seed % 4 == 2;
  config.eos_ids = {1};
  config.yarn.active = seed % 4 < 2;
  config.yarn.factor = 8;
  config.yarn.original_positions = 32;
  config.yarn.mscale = 0.8;
  config.yarn.mscale_all_dim = 1.2;
  if (seed >= 4) {
    config.router_score = seed % 2 == 0 ? RouterScore::kSoftmax : RouterScore::kSigmoid;
    config.model_type = seed % 2 == 0 ? "deepseek_v2" : "deepseek_v3";
    config.normalize_routes = seed % 4 < 2;
    config.layers = 6;
    config.first_dense_layers = 3;
    config.moe_layer_freq = 2;
    config.heads = seed % 4 == 0 ? 1 : 7;
    config.hidden = 136;
    config.moe_inner = 132;
    config.dense_inner = 264;
    config.value_dim = 40;
    config.tied_head = false;
  }
  return config;
}

inline constexpr uint64_t kRandomModels = 4;      // of three layers
inline constexpr uint64_t kRandomShapes = 8;      // the larger ones as well

}  // namespace ember::testing
