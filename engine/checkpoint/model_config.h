// Model config: the shape and constants of a model of the DeepSeek MLA family, read from its
// config.json, or from the JSON of DeepSeek's inference code, and checked.
//
// Journey    config.json -> [model_config] -> weights, forward, kv_layout, identity
// Invariant  a config that contradicts itself or names what we do not do is refused by field
// Source     Hugging Face's config classes deepseek_v2, deepseek_v3, glm4_moe_lite, youtu; the
//            ModelArgs of DeepSeek's inference code
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ember {

struct YarnConfig {
  bool active = false;
  double factor = 1;
  double original_positions = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  double mscale = 0;            // 0: absent
  double mscale_all_dim = 0;    // 0: absent
  double attention_factor = 0;  // 0: absent; overrides the cos/sin ratio
  bool truncate = true;
};

// How a layer's router scores and chooses. Sigmoid (V3): a bias takes part in the choice, a group
// counts by its two best, weights are normalised (if asked) and always scaled. Softmax (V2): no
// bias, a group counts by its best, weights are either normalised or scaled.
enum class RouterScore : uint8_t { kSigmoid = 1, kSoftmax = 2 };

struct ModelConfig {
  std::string model_type;
  uint32_t vocab_size = 0;
  uint32_t hidden = 0;          // d
  uint32_t layers = 0;          // L
  uint32_t heads = 0;           // H
  uint32_t q_lora_rank = 0;     // Q; 0: none
  uint32_t kv_lora_rank = 0;    // C
  uint32_t nope_dim = 0;        // N
  uint32_t rope_dim = 0;        // R
  uint32_t value_dim = 0;       // V
  uint32_t dense_inner = 0;     // intermediate_size
  uint32_t moe_inner = 0;       // m
  uint32_t routed_experts = 0;  // E; 0: all layers dense
  uint32_t shared_experts = 0;
  uint32_t experts_per_token = 0;  // K
  uint32_t first_dense_layers = 0;
  uint32_t moe_layer_freq = 1;
  uint32_t expert_groups = 1;
  uint32_t top_groups = 1;
  RouterScore router_score = RouterScore::kSigmoid;
  bool normalize_routes = true;
  float routed_scale = 1;
  float norm_eps = 1e-6f;
  float inner_norm_eps = 1e-6f;  // q_a and kv_a norms: the reference's class default
  double rope_theta = 10000;
  YarnConfig yarn;
  uint32_t max_positions = 0;
  bool tied_head = false;
  uint32_t bos_id = 0;
  std::vector<uint32_t> eos_ids;  // union of config.json and generation_config.json

  bool is_moe_layer(uint32_t layer) const {
    return routed_experts > 0 && layer >= first_dense_layers && layer % moe_layer_freq == 0;
  }
  // Softmax scale with YaRN's m^2 (from mscale_all_dim).
  float softmax_scale() const;
  // Factor of cos and sin.
  float rope_amplitude() const;
  // [R/2], computed in double, rounded to fp32.
  std::vector<float> inv_freq() const;
};

// Reads <folder>/config.json and generation_config.json where it exists.
// Errors: kIo, kInvalidArgument (field, found, expected), kUnsupported (architecture, variants).
Result<ModelConfig> load_model_config(const std::string& folder);

// Reads one file in either form. The inference form names no end tokens: `eos_ids` stays empty.
// Errors: as load_model_config.
Result<ModelConfig> load_model_config_file(const std::string& path);

}  // namespace ember
