// Model config, in parts: the two forms of the file, its RoPE fields, and the checks across fields.
//
// Journey    config.json -> [model_config_parts] -> model_config
#pragma once

#include "engine/checkpoint/json_object.h"
#include "engine/checkpoint/model_config.h"

namespace ember {

// The two forms, field by field. Errors: field, found, expected; kUnsupported for another
// architecture or a variant that would need another forward pass.
Result<ModelConfig> read_hf_config(const JsonObject& json);
Result<ModelConfig> read_inference_config(const JsonObject& json);

// Adds the file's eos_token_id (one or a list) to config.eos_ids; vocab_size must be set.
Status add_eos_ids(const JsonObject& json, ModelConfig& config);

// Reads rope_theta with rope_scaling, or transformers 5's rope_parameters, into rope_theta and
// yarn; max_positions must be set. Errors: field, found, expected; kUnsupported for another rope
// type.
Status read_rope(const JsonObject& json, ModelConfig& config);
// Errors: kInvalidArgument where the values in `config`, right alone, make no usable factor.
Status check_rope_factors(const JsonObject& json, const ModelConfig& config);

// Errors: kInvalidArgument naming two fields of `json` that contradict each other, or a zero size.
Status check_model_config(const JsonObject& json, const ModelConfig& config);

// A field as a 32-bit size. Errors: field, found, expected.
Status read_size(const JsonObject& json, const std::string& field, uint32_t& value);
// The same, `absent` where the field is absent or null.
Status read_size_or(const JsonObject& json, const std::string& field, uint32_t absent,
                    uint32_t& value);
// A factor of the experts' weights, and an epsilon of a norm. Errors: field, found, expected.
Status read_routed_scale(const JsonObject& json, const std::string& field, double absent,
                         float& value);
Status read_eps(const JsonObject& json, const std::string& field, float& value);

Error unsupported_field(const JsonObject& json, const std::string& field, const std::string& found,
                        const std::string& expected);

}  // namespace ember
