// Model config: config.json and generation_config.json, field by field, into ModelConfig.
#include "engine/checkpoint/model_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "engine/checkpoint/json_object.h"
#include "engine/checkpoint/model_config_parts.h"

namespace ember {
namespace {

constexpr size_t kMaxConfigBytes = size_t{16} << 20;
constexpr double kMostRoutedScale = 1e6;
constexpr const char* kModelType = "deepseek_v3";
constexpr const char* kArchitecture = "DeepseekV3ForCausalLM";

Error unsupported(const JsonObject& json, const std::string& field, const std::string& found,
                  const std::string& expected) {
  return {ErrorCode::kUnsupported,
          json.name(field) + ": found " + found + ", supported is " + expected};
}

Status read_size(const JsonObject& json, const std::string& field, uint32_t& value) {
  EMBER_ASSIGN(const uint64_t read, json.whole(field));
  if (read > std::numeric_limits<uint32_t>::max()) {
    return Error{ErrorCode::kInvalidArgument, json.name(field) + ": found " + std::to_string(read) +
                                                  ", expected less than 2^32"};
  }
  value = static_cast<uint32_t>(read);
  return {};
}

Status read_size_or(const JsonObject& json, const std::string& field, uint32_t absent,
                    uint32_t& value) {
  if (json.has(field)) return read_size(json, field, value);
  value = absent;
  return {};
}

Status check_architecture(const JsonObject& json) {
  EMBER_ASSIGN(const std::string model_type, json.text("model_type"));
  if (model_type != kModelType) {
    return unsupported(json, "model_type", json_quote(model_type),
                       std::string("\"") + kModelType + "\"");
  }
  if (!json.has("architectures")) return {};
  EMBER_ASSIGN(const std::vector<std::string> names, json.text_list("architectures"));
  if (std::find(names.begin(), names.end(), kArchitecture) == names.end()) {
    return unsupported(json, "architectures", names.empty() ? "[]" : json_quote(names.front()),
                       std::string("\"") + kArchitecture + "\"");
  }
  return {};
}

// Fields whose other values would need another forward pass.
Status check_variants(const JsonObject& json) {
  const std::pair<const char*, const char*> texts[] = {
      {"scoring_func", "sigmoid"}, {"topk_method", "noaux_tc"}, {"hidden_act", "silu"}};
  for (const auto& [field, expected] : texts) {
    if (!json.has(field)) continue;
    EMBER_ASSIGN(const std::string found, json.text(field));
    if (found != expected) {
      return unsupported(json, field, json_quote(found), std::string("\"") + expected + "\"");
    }
  }
  const std::pair<const char*, bool> flags[] = {
      {"attention_bias", false}, {"mlp_bias", false}, {"rope_interleave", true}};
  for (const auto& [field, expected] : flags) {
    if (!json.has(field)) continue;
    EMBER_ASSIGN(const bool found, json.boolean(field));
    if (found != expected) {
      return unsupported(json, field, found ? "true" : "false", expected ? "true" : "false");
    }
  }
  return {};
}

Status read_attention(const JsonObject& json, ModelConfig& config) {
  EMBER_TRY(read_size(json, "num_attention_heads", config.heads));
  if (!json.contains("q_lora_rank")) {
    return Error{ErrorCode::kInvalidArgument,
                 json.name("q_lora_rank") + ": missing, expected a whole number or null (none)"};
  }
  EMBER_TRY(read_size_or(json, "q_lora_rank", 0, config.q_lora_rank));
  EMBER_TRY(read_size(json, "kv_lora_rank", config.kv_lora_rank));
  EMBER_TRY(read_size(json, "qk_nope_head_dim", config.nope_dim));
  EMBER_TRY(read_size(json, "qk_rope_head_dim", config.rope_dim));
  return read_size(json, "v_head_dim", config.value_dim);
}

// What a config leaves out has the reference's class default.
Status read_experts(const JsonObject& json, ModelConfig& config) {
  EMBER_TRY(read_size(json, "intermediate_size", config.dense_inner));
  if (!json.contains("n_routed_experts")) {
    return Error{ErrorCode::kInvalidArgument,
                 json.name("n_routed_experts") + ": missing, expected a whole number or null"};
  }
  EMBER_TRY(read_size_or(json, "n_routed_experts", 0, config.routed_experts));
  EMBER_TRY(read_size_or(json, "moe_layer_freq", 1, config.moe_layer_freq));
  EMBER_TRY(read_size_or(json, "first_k_dense_replace", 3, config.first_dense_layers));
  if (config.routed_experts == 0) return {};
  EMBER_TRY(read_size(json, "moe_intermediate_size", config.moe_inner));
  EMBER_TRY(read_size_or(json, "n_shared_experts", json.contains("n_shared_experts") ? 0 : 1,
                         config.shared_experts));
  EMBER_TRY(read_size_or(json, "num_experts_per_tok", 8, config.experts_per_token));
  EMBER_TRY(read_size_or(json, "n_group", 8, config.expert_groups));
  EMBER_TRY(read_size_or(json, "topk_group", 4, config.top_groups));
  if (json.has("norm_topk_prob")) {
    EMBER_ASSIGN(config.normalize_routes, json.boolean("norm_topk_prob"));
  }
  double scale = 2.5;
  if (json.has("routed_scaling_factor")) {
    EMBER_ASSIGN(scale, json.number("routed_scaling_factor"));
  }
  if (!(scale > 0 && scale <= kMostRoutedScale)) {
    return Error{ErrorCode::kInvalidArgument,
                 json.name("routed_scaling_factor") + ": found " + shown_number(scale) +
                     ", expected more than 0 and at most " + shown_number(kMostRoutedScale)};
  }
  config.routed_scale = static_cast<float>(scale);
  return {};
}

Status read_norm_eps(const JsonObject& json, ModelConfig& config) {
  if (!json.has("rms_norm_eps")) return {};
  EMBER_ASSIGN(const double eps, json.number("rms_norm_eps"));
  if (!(eps > 0 && eps < 1)) {
    return Error{ErrorCode::kInvalidArgument, json.name("rms_norm_eps") + ": found " +
                                                  shown_number(eps) +
                                                  ", expected a small number above 0"};
  }
  config.norm_eps = static_cast<float>(eps);
  return {};
}

Status add_eos(const JsonObject& json, ModelConfig& config) {
  if (!json.has("eos_token_id")) return {};
  EMBER_ASSIGN(const std::vector<uint64_t> ids, json.whole_or_list("eos_token_id"));
  for (const uint64_t id : ids) {
    if (id >= config.vocab_size) {
      return Error{ErrorCode::kInvalidArgument,
                   json.name("eos_token_id") + ": found " + std::to_string(id) +
                       ", expected less than vocab_size, " + std::to_string(config.vocab_size)};
    }
    const auto narrow = static_cast<uint32_t>(id);
    const auto end = config.eos_ids.end();
    if (std::find(config.eos_ids.begin(), end, narrow) == end) config.eos_ids.push_back(narrow);
  }
  return {};
}

Status read_fields(const JsonObject& json, ModelConfig& config) {
  EMBER_TRY(check_architecture(json));
  EMBER_TRY(check_variants(json));
  config.model_type = kModelType;
  EMBER_TRY(read_size(json, "vocab_size", config.vocab_size));
  EMBER_TRY(read_size(json, "hidden_size", config.hidden));
  EMBER_TRY(read_size(json, "num_hidden_layers", config.layers));
  EMBER_TRY(read_size(json, "max_position_embeddings", config.max_positions));
  EMBER_TRY(read_attention(json, config));
  EMBER_TRY(read_experts(json, config));
  EMBER_TRY(read_norm_eps(json, config));
  if (json.has("tie_word_embeddings")) {
    EMBER_ASSIGN(config.tied_head, json.boolean("tie_word_embeddings"));
  }
  EMBER_TRY(read_size_or(json, "bos_token_id", 0, config.bos_id));
  EMBER_TRY(add_eos(json, config));
  EMBER_TRY(check_model_config(json, config));
  return read_rope(json, config);
}

}  // namespace

Result<ModelConfig> load_model_config(const std::string& folder) {
  const std::filesystem::path path(folder);
  EMBER_ASSIGN(const JsonObject json,
               JsonObject::read_file((path / "config.json").string(), kMaxConfigBytes));
  ModelConfig config;
  EMBER_TRY(read_fields(json, config));
  const std::filesystem::path generation = path / "generation_config.json";
  std::error_code failed;
  if (std::filesystem::exists(generation, failed)) {
    EMBER_ASSIGN(const JsonObject fields,
                 JsonObject::read_file(generation.string(), kMaxConfigBytes));
    EMBER_TRY(add_eos(fields, config));
  }
  return config;
}

}  // namespace ember
