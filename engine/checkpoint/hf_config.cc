// Model config in Hugging Face's form: config.json, field by field, by model_type.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "engine/checkpoint/model_config_parts.h"

namespace ember {
namespace {

// What a config leaves out has the default of the reference's config class; sizes of matrices may
// not be left out.
struct Family {
  std::string_view model_type;
  std::string_view architecture;
  bool experts;          // false: every layer is dense, whatever the file says of experts
  RouterScore score;
  uint32_t shared;       // n_shared_experts
  uint32_t top_k;        // num_experts_per_tok
  uint32_t groups;       // n_group
  uint32_t top_groups;   // topk_group
  uint32_t first_dense;  // first_k_dense_replace
  bool normalize;        // norm_topk_prob
  double scale;          // routed_scaling_factor
  float norm_eps;        // rms_norm_eps
  bool tied;             // tie_word_embeddings
};

constexpr RouterScore kSigmoid = RouterScore::kSigmoid;
constexpr RouterScore kSoftmax = RouterScore::kSoftmax;

constexpr std::array<Family, 5> kFamilies = {{
    {"deepseek_v2", "DeepseekV2ForCausalLM", true, kSoftmax, 0, 0, 1, 1, 0, false, 1.0, 1e-6f,
     false},
    {"deepseek_v3", "DeepseekV3ForCausalLM", true, kSigmoid, 1, 8, 8, 4, 3, true, 2.5, 1e-6f,
     false},
    {"kimi_k2", "DeepseekV3ForCausalLM", true, kSigmoid, 1, 8, 8, 4, 3, true, 2.5, 1e-6f, false},
    {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", true, kSigmoid, 1, 4, 1, 1, 1, true, 1.8, 1e-5f,
     false},
    {"youtu", "YoutuForCausalLM", false, kSigmoid, 0, 0, 1, 1, 0, true, 1.0, 1e-6f, true},
}};

std::string quoted(std::string_view text) { return json_quote(std::string(text)); }

Result<Family> find_family(const JsonObject& json) {
  EMBER_ASSIGN(const std::string model_type, json.text("model_type"));
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return family;
    known += (known.empty() ? "" : ", ") + quoted(family.model_type);
  }
  return unsupported_field(json, "model_type", json_quote(model_type), known);
}

Status check_architecture(const JsonObject& json, const Family& family) {
  if (!json.has("architectures")) return {};
  EMBER_ASSIGN(const std::vector<std::string> names, json.text_list("architectures"));
  if (std::find(names.begin(), names.end(), family.architecture) == names.end()) {
    return unsupported_field(json, "architectures",
                             names.empty() ? "[]" : json_quote(names.front()),
                             quoted(family.architecture));
  }
  return {};
}

// Fields whose other values would need another forward pass.
Status check_variants(const JsonObject& json) {
  if (json.has("hidden_act")) {
    EMBER_ASSIGN(const std::string found, json.text("hidden_act"));
    if (found != "silu") {
      return unsupported_field(json, "hidden_act", json_quote(found), "\"silu\"");
    }
  }
  const std::pair<const char*, bool> flags[] = {
      {"attention_bias", false}, {"mlp_bias", false}, {"rope_interleave", true}};
  for (const auto& [field, expected] : flags) {
    if (!json.has(field)) continue;
    EMBER_ASSIGN(const bool found, json.boolean(field));
    if (found != expected) {
      return unsupported_field(json, field, found ? "true" : "false", expected ? "true" : "false");
    }
  }
  for (const std::string& key : json.keys()) {
    if (key.starts_with("index_") && json.has(key)) {
      return unsupported_field(json, key, "the sparse attention indexer of DeepSeek-V3.2",
                               "a model without one");
    }
  }
  return {};
}

// The block size of fp8 weights; whether a tensor is fp8 at all, its own dtype says.
Status check_quantization(const JsonObject& json) {
  constexpr const char* kField = "quantization_config";
  if (!json.has(kField)) return {};
  EMBER_ASSIGN(const JsonObject fields, json.object(kField));
  if (fields.has("quant_method")) {
    EMBER_ASSIGN(const std::string method, fields.text("quant_method"));
    if (method != "fp8") {
      return unsupported_field(fields, "quant_method", json_quote(method),
                               "\"fp8\" (no packed int4, no other quantisation)");
    }
  }
  if (fields.has("fmt")) {
    EMBER_ASSIGN(const std::string format, fields.text("fmt"));
    if (format != "e4m3") {
      return unsupported_field(fields, "fmt", json_quote(format), "\"e4m3\"");
    }
  }
  if (fields.has("weight_block_size")) {
    EMBER_ASSIGN(const std::vector<uint64_t> sizes, fields.whole_list("weight_block_size"));
    if (sizes != std::vector<uint64_t>{128, 128}) {
      return unsupported_field(fields, "weight_block_size", "other sizes", "[128, 128]");
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

// A text field that must agree with the family's score, where it is there.
Result<std::string> text_or(const JsonObject& json, const std::string& field,
                            const std::string& absent) {
  if (!json.has(field)) return absent;
  return json.text(field);
}

Status read_router(const JsonObject& json, const Family& family, ModelConfig& config) {
  config.router_score = family.score;
  const bool softmax = family.score == kSoftmax;
  const std::string score = softmax ? "softmax" : "sigmoid";
  EMBER_ASSIGN(const std::string found, text_or(json, "scoring_func", score));
  if (found != score) {
    return unsupported_field(json, "scoring_func", json_quote(found), json_quote(score));
  }
  EMBER_ASSIGN(const std::string method,
               text_or(json, "topk_method", softmax ? "greedy" : "noaux_tc"));
  const bool grouped = method == "group_limited_greedy";
  if (softmax ? !grouped && method != "greedy" : method != "noaux_tc") {
    return unsupported_field(json, "topk_method", json_quote(method),
                             softmax ? R"("greedy", "group_limited_greedy")" : R"("noaux_tc")");
  }
  EMBER_TRY(read_size_or(json, "n_group", family.groups, config.expert_groups));
  EMBER_TRY(read_size_or(json, "topk_group", family.top_groups, config.top_groups));
  if (softmax && !grouped) config.expert_groups = config.top_groups = 1;
  config.normalize_routes = family.normalize;
  if (json.has("norm_topk_prob")) {
    EMBER_ASSIGN(config.normalize_routes, json.boolean("norm_topk_prob"));
  }
  return read_routed_scale(json, "routed_scaling_factor", family.scale, config.routed_scale);
}

// transformers 5 lists "dense" and "sparse" by layer; this engine knows dense layers at the front.
Status read_layer_types(const JsonObject& json, ModelConfig& config) {
  if (!json.has("mlp_layer_types")) return {};
  EMBER_ASSIGN(const std::vector<std::string> types, json.text_list("mlp_layer_types"));
  uint32_t dense = 0;
  while (dense < types.size() && types[dense] == "dense") ++dense;
  const bool rest_sparse = std::all_of(types.begin() + dense, types.end(),
                                       [](const std::string& type) { return type == "sparse"; });
  if (!rest_sparse || types.size() != config.layers) {
    return unsupported_field(json, "mlp_layer_types", "another order or number",
                             "\"dense\" layers, then \"sparse\" ones, num_hidden_layers in all");
  }
  config.first_dense_layers = dense;
  return {};
}

Status read_experts(const JsonObject& json, const Family& family, ModelConfig& config) {
  EMBER_TRY(read_size(json, "intermediate_size", config.dense_inner));
  if (!family.experts) return {};
  if (!json.contains("n_routed_experts")) {
    return Error{ErrorCode::kInvalidArgument,
                 json.name("n_routed_experts") + ": missing, expected a whole number or null"};
  }
  EMBER_TRY(read_size_or(json, "n_routed_experts", 0, config.routed_experts));
  EMBER_TRY(read_size_or(json, "moe_layer_freq", 1, config.moe_layer_freq));
  EMBER_TRY(read_size_or(json, "first_k_dense_replace", family.first_dense,
                         config.first_dense_layers));
  if (config.routed_experts == 0) return {};
  EMBER_TRY(read_layer_types(json, config));
  EMBER_TRY(read_size(json, "moe_intermediate_size", config.moe_inner));
  EMBER_TRY(read_size_or(json, "n_shared_experts",
                         json.contains("n_shared_experts") ? 0 : family.shared,
                         config.shared_experts));
  EMBER_TRY(read_size_or(json, "num_experts_per_tok", family.top_k, config.experts_per_token));
  return read_router(json, family, config);
}

}  // namespace

Result<ModelConfig> read_hf_config(const JsonObject& json) {
  EMBER_ASSIGN(const Family family, find_family(json));
  EMBER_TRY(check_architecture(json, family));
  EMBER_TRY(check_variants(json));
  EMBER_TRY(check_quantization(json));
  ModelConfig config;
  config.model_type = family.model_type;
  EMBER_TRY(read_size(json, "vocab_size", config.vocab_size));
  EMBER_TRY(read_size(json, "hidden_size", config.hidden));
  EMBER_TRY(read_size(json, "num_hidden_layers", config.layers));
  EMBER_TRY(read_size(json, "max_position_embeddings", config.max_positions));
  EMBER_TRY(read_attention(json, config));
  EMBER_TRY(read_experts(json, family, config));
  config.norm_eps = family.norm_eps;
  EMBER_TRY(read_eps(json, "rms_norm_eps", config.norm_eps));
  config.tied_head = family.tied;
  if (json.has("tie_word_embeddings")) {
    EMBER_ASSIGN(config.tied_head, json.boolean("tie_word_embeddings"));
  }
  EMBER_TRY(read_size_or(json, "bos_token_id", 0, config.bos_id));
  EMBER_TRY(add_eos_ids(json, config));
  EMBER_TRY(check_model_config(json, config));
  EMBER_TRY(read_rope(json, config));
  return config;
}

}  // namespace ember
