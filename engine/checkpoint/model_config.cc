// Model config: finds out which form a file has, and what both forms read in the same way.
#include "engine/checkpoint/model_config.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "engine/checkpoint/json_object.h"
#include "engine/checkpoint/model_config_parts.h"

namespace ember {
namespace {

constexpr size_t kMaxConfigBytes = size_t{16} << 20;
constexpr double kMostRoutedScale = 1e6;

// DeepSeek's inference code calls the hidden size "dim"; Hugging Face always names a model_type.
bool is_inference_form(const JsonObject& json) {
  return json.has("dim") && json.has("n_layers") && !json.has("model_type");
}

}  // namespace

Error unsupported_field(const JsonObject& json, const std::string& field, const std::string& found,
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

Status read_routed_scale(const JsonObject& json, const std::string& field, double absent,
                         float& value) {
  double scale = absent;
  if (json.has(field)) {
    EMBER_ASSIGN(scale, json.number(field));
  }
  if (!(scale > 0 && scale <= kMostRoutedScale)) {
    return Error{ErrorCode::kInvalidArgument, json.name(field) + ": found " + shown_number(scale) +
                                                  ", expected more than 0 and at most " +
                                                  shown_number(kMostRoutedScale)};
  }
  value = static_cast<float>(scale);
  return {};
}

Status read_eps(const JsonObject& json, const std::string& field, float& value) {
  if (!json.has(field)) return {};
  EMBER_ASSIGN(const double eps, json.number(field));
  if (!(eps > 0 && eps < 1)) {
    return Error{ErrorCode::kInvalidArgument, json.name(field) + ": found " + shown_number(eps) +
                                                  ", expected a small number above 0"};
  }
  value = static_cast<float>(eps);
  return {};
}

Status add_eos_ids(const JsonObject& json, ModelConfig& config) {
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

Result<ModelConfig> load_model_config_file(const std::string& path) {
  EMBER_ASSIGN(const JsonObject json, JsonObject::read_file(path, kMaxConfigBytes));
  return is_inference_form(json) ? read_inference_config(json) : read_hf_config(json);
}

Result<ModelConfig> load_model_config(const std::string& folder) {
  const std::filesystem::path path(folder);
  EMBER_ASSIGN(ModelConfig config, load_model_config_file((path / "config.json").string()));
  const std::filesystem::path generation = path / "generation_config.json";
  std::error_code failed;
  if (std::filesystem::exists(generation, failed)) {
    EMBER_ASSIGN(const JsonObject fields,
                 JsonObject::read_file(generation.string(), kMaxConfigBytes));
    EMBER_TRY(add_eos_ids(fields, config));
  }
  return config;
}

}  // namespace ember
