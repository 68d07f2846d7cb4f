// Model config checks: sizes that must not be zero and fields that must agree with each other.
#include <limits>
#include <utility>

#include "engine/checkpoint/model_config_parts.h"

namespace ember {
namespace {

// What DeepSeek's inference code calls a field of config.json, where it is another name.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"hidden_size", "dim"},
    {"intermediate_size", "inter_dim"},
    {"moe_intermediate_size", "moe_inter_dim"},
    {"num_hidden_layers", "n_layers"},
    {"num_attention_heads", "n_heads"},
    {"num_experts_per_tok", "n_activated_experts"},
    {"n_group", "n_expert_groups"},
    {"topk_group", "n_limited_groups"},
    {"max_position_embeddings", "max_seq_len"}};

Error refuse(const JsonObject& json, std::string field, uint64_t found,
             const std::string& expected) {
  for (const auto& [name, other] : kOtherNames) {
    if (field == name && json.has(other)) field = other;
  }
  return {ErrorCode::kInvalidArgument,
          json.name(field) + ": found " + std::to_string(found) + ", expected " + expected};
}

Status check_sizes(const JsonObject& json, const ModelConfig& config) {
  const std::pair<const char*, uint32_t> sizes[] = {
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden},
      {"num_hidden_layers", config.layers},
      {"num_attention_heads", config.heads},
      {"kv_lora_rank", config.kv_lora_rank},
      {"qk_nope_head_dim", config.nope_dim},
      {"qk_rope_head_dim", config.rope_dim},
      {"v_head_dim", config.value_dim},
      {"max_position_embeddings", config.max_positions},
      {"moe_layer_freq", config.moe_layer_freq}};
  for (const auto& [field, value] : sizes) {
    if (value == 0) return refuse(json, field, 0, "1 or more");
  }
  if (config.rope_dim % 2 != 0) {
    return refuse(json, "qk_rope_head_dim", config.rope_dim, "an even number");
  }
  constexpr uint32_t kMostLayers = 4096;
  if (config.layers > kMostLayers) {
    return refuse(json, "num_hidden_layers", config.layers,
                  "at most " + std::to_string(kMostLayers));
  }
  constexpr uint32_t kMostIds = std::numeric_limits<int32_t>::max();
  if (config.vocab_size > kMostIds) {
    return refuse(json, "vocab_size", config.vocab_size, "at most " + std::to_string(kMostIds));
  }
  if (config.max_positions > kMostIds) {
    return refuse(json, "max_position_embeddings", config.max_positions,
                  "at most " + std::to_string(kMostIds));
  }
  return {};
}

Status check_heads(const JsonObject& json, const ModelConfig& config) {
  if (json.has("num_key_value_heads")) {
    EMBER_ASSIGN(const uint64_t kv_heads, json.whole("num_key_value_heads"));
    if (kv_heads != config.heads) {
      return refuse(json, "num_key_value_heads", kv_heads,
                    std::to_string(config.heads) + " as num_attention_heads");
    }
  }
  if (json.has("qk_head_dim")) {
    EMBER_ASSIGN(const uint64_t head_dim, json.whole("qk_head_dim"));
    const uint64_t sum = uint64_t{config.nope_dim} + config.rope_dim;
    if (head_dim != sum) {
      return refuse(json, "qk_head_dim", head_dim,
                    std::to_string(sum) + ", qk_nope_head_dim + qk_rope_head_dim");
    }
  }
  return {};
}

Status check_experts(const JsonObject& json, const ModelConfig& config) {
  if (config.routed_experts == 0) return {};
  const uint32_t experts = config.routed_experts;
  if (config.moe_inner == 0) return refuse(json, "moe_intermediate_size", 0, "1 or more");
  if (config.expert_groups == 0) return refuse(json, "n_group", 0, "1 or more");
  if (config.top_groups == 0) return refuse(json, "topk_group", 0, "1 or more");
  if (config.experts_per_token == 0) return refuse(json, "num_experts_per_tok", 0, "1 or more");
  if (experts % config.expert_groups != 0) {
    return refuse(json, "n_routed_experts", experts,
                  "a multiple of n_group, " + std::to_string(config.expert_groups));
  }
  const uint32_t group_size = experts / config.expert_groups;
  if (config.expert_groups > 1 && group_size < 2) {
    return refuse(json, "n_group", config.expert_groups,
                  "groups of at least 2 of the " + std::to_string(experts) + " experts");
  }
  if (config.top_groups > config.expert_groups) {
    return refuse(json, "topk_group", config.top_groups,
                  "at most n_group, " + std::to_string(config.expert_groups));
  }
  const uint64_t kept = uint64_t{config.top_groups} * group_size;
  if (config.experts_per_token > kept) {
    return refuse(json, "num_experts_per_tok", config.experts_per_token,
                  "at most the " + std::to_string(kept) + " experts of the kept groups");
  }
  return {};
}

}  // namespace

Status check_model_config(const JsonObject& json, const ModelConfig& config) {
  EMBER_TRY(check_sizes(json, config));
  EMBER_TRY(check_heads(json, config));
  EMBER_TRY(check_experts(json, config));
  bool any_dense = false;
  for (uint32_t layer = 0; layer < config.layers && !any_dense; ++layer) {
    any_dense = !config.is_moe_layer(layer);
  }
  if (any_dense && config.dense_inner == 0) {
    return refuse(json, "intermediate_size", 0, "1 or more");
  }
  if (config.bos_id >= config.vocab_size) {
    return refuse(json, "bos_token_id", config.bos_id,
                  "less than vocab_size, " + std::to_string(config.vocab_size));
  }
  return {};
}

}  // namespace ember
