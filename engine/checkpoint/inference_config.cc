// Model config in the form of DeepSeek's inference code: its names, its defaults, and a few keys of
// ours for members of the family that its code does not know.
#include <algorithm>
#include <set>
#include <string_view>

#include "engine/checkpoint/model_config_parts.h"

namespace ember {
namespace {

// Of the reference's arguments.
constexpr uint32_t kDefaultMaxSequence = 16384;
constexpr double kDefaultOriginalSequence = 4096;
constexpr double kDefaultRopeFactor = 40;

// Every key of the form; the last line is ours.
const std::set<std::string_view> kKeys = {
    "vocab_size", "dim", "inter_dim", "moe_inter_dim", "n_layers", "n_dense_layers", "n_heads",
    "n_routed_experts", "n_shared_experts", "n_activated_experts", "n_expert_groups",
    "n_limited_groups", "route_scale", "score_func", "q_lora_rank", "kv_lora_rank",
    "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "mscale", "dtype", "scale_fmt",
    "max_batch_size", "max_seq_len", "original_seq_len", "rope_theta", "rope_factor", "beta_fast",
    "beta_slow",
    "norm_eps", "inner_norm_eps", "tie_word_embeddings", "eos_token_id"};

Status check_keys(const JsonObject& json) {
  for (const std::string& key : json.keys()) {
    if (kKeys.contains(key)) continue;
    const bool index = key.starts_with("index_");
    return unsupported_field(json, key,
                             index ? "the sparse attention indexer of DeepSeek-V3.2" : "this key",
                             "the keys that configs/README.md lists");
  }
  return {};
}

Result<double> number_or(const JsonObject& json, const std::string& field, double absent) {
  if (!json.has(field)) return absent;
  return json.number(field);
}

Status read_sizes(const JsonObject& json, ModelConfig& config) {
  EMBER_TRY(read_size(json, "vocab_size", config.vocab_size));
  EMBER_TRY(read_size(json, "dim", config.hidden));
  EMBER_TRY(read_size(json, "n_layers", config.layers));
  EMBER_TRY(read_size(json, "n_heads", config.heads));
  EMBER_TRY(read_size_or(json, "q_lora_rank", 0, config.q_lora_rank));
  EMBER_TRY(read_size(json, "kv_lora_rank", config.kv_lora_rank));
  EMBER_TRY(read_size(json, "qk_nope_head_dim", config.nope_dim));
  EMBER_TRY(read_size(json, "qk_rope_head_dim", config.rope_dim));
  EMBER_TRY(read_size(json, "v_head_dim", config.value_dim));
  return read_size(json, "inter_dim", config.dense_inner);
}

// A softmax router of this code never normalises, a sigmoid router always does; both scale.
Status read_experts(const JsonObject& json, ModelConfig& config) {
  EMBER_TRY(read_size_or(json, "n_routed_experts", 0, config.routed_experts));
  if (config.routed_experts == 0) return {};
  EMBER_TRY(read_size(json, "moe_inter_dim", config.moe_inner));
  EMBER_TRY(read_size_or(json, "n_dense_layers", 1, config.first_dense_layers));
  EMBER_TRY(read_size_or(json, "n_shared_experts", 2, config.shared_experts));
  EMBER_TRY(read_size_or(json, "n_activated_experts", 6, config.experts_per_token));
  EMBER_TRY(read_size_or(json, "n_expert_groups", 1, config.expert_groups));
  EMBER_TRY(read_size_or(json, "n_limited_groups", 1, config.top_groups));
  EMBER_TRY(read_routed_scale(json, "route_scale", 1.0, config.routed_scale));
  std::string score = "softmax";
  if (json.has("score_func")) {
    EMBER_ASSIGN(score, json.text("score_func"));
  }
  if (score != "softmax" && score != "sigmoid") {
    return unsupported_field(json, "score_func", json_quote(score), R"("softmax", "sigmoid")");
  }
  config.router_score = score == "softmax" ? RouterScore::kSoftmax : RouterScore::kSigmoid;
  config.normalize_routes = config.router_score == RouterScore::kSigmoid;
  return {};
}

// The reference applies YaRN where it allocates more positions than the model was trained on.
Status read_positions(const JsonObject& json, ModelConfig& config) {
  EMBER_TRY(read_size_or(json, "max_seq_len", kDefaultMaxSequence, config.max_positions));
  EMBER_ASSIGN(config.rope_theta, number_or(json, "rope_theta", config.rope_theta));
  YarnConfig& yarn = config.yarn;
  EMBER_ASSIGN(yarn.original_positions,
               number_or(json, "original_seq_len", kDefaultOriginalSequence));
  EMBER_ASSIGN(yarn.factor, number_or(json, "rope_factor", kDefaultRopeFactor));
  EMBER_ASSIGN(yarn.beta_fast, number_or(json, "beta_fast", yarn.beta_fast));
  EMBER_ASSIGN(yarn.beta_slow, number_or(json, "beta_slow", yarn.beta_slow));
  EMBER_ASSIGN(yarn.mscale, number_or(json, "mscale", 1.0));
  yarn.mscale_all_dim = yarn.mscale;
  yarn.active = config.max_positions > yarn.original_positions && yarn.factor > 1;
  const bool usable = config.rope_theta > 1 && yarn.original_positions >= 1 && yarn.factor >= 1 &&
                      yarn.beta_slow > 0 && yarn.beta_fast >= yarn.beta_slow && yarn.mscale > 0;
  if (!usable) {
    return Error{ErrorCode::kInvalidArgument,
                 json.name("rope_theta") +
                     ": found values of rope_theta, original_seq_len, rope_factor, beta_fast, "
                     "beta_slow and mscale that make no frequencies, expected positive ones with "
                     "beta_fast at least beta_slow and rope_factor at least 1"};
  }
  if (!yarn.active) yarn = YarnConfig{};
  return {};
}

Status check_dtype(const JsonObject& json) {
  const std::pair<const char*, std::set<std::string>> fields[] = {{"dtype", {"bf16", "fp8"}},
                                                                  {"scale_fmt", {"ue8m0"}}};
  for (const auto& [field, known] : fields) {
    if (!json.has(field)) continue;
    EMBER_ASSIGN(const std::string found, json.text(field));
    if (!known.contains(found)) {
      return unsupported_field(json, field, json_quote(found), json_quote(*known.begin()));
    }
  }
  return {};
}

}  // namespace

Result<ModelConfig> read_inference_config(const JsonObject& json) {
  EMBER_TRY(check_keys(json));
  EMBER_TRY(check_dtype(json));
  ModelConfig config;
  EMBER_TRY(read_sizes(json, config));
  EMBER_TRY(read_experts(json, config));
  EMBER_TRY(read_positions(json, config));
  const bool softmax = config.routed_experts > 0 && config.router_score == RouterScore::kSoftmax;
  config.model_type = softmax ? "deepseek_v2" : "deepseek_v3";
  EMBER_TRY(read_eps(json, "norm_eps", config.norm_eps));
  EMBER_TRY(read_eps(json, "inner_norm_eps", config.inner_norm_eps));
  if (json.has("tie_word_embeddings")) {
    EMBER_ASSIGN(config.tied_head, json.boolean("tie_word_embeddings"));
  }
  EMBER_TRY(add_eos_ids(json, config));
  EMBER_TRY(check_model_config(json, config));
  EMBER_TRY(check_rope_factors(json, config));
  return config;
}

}  // namespace ember
