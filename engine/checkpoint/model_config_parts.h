// Model config, in parts: the RoPE fields in both spellings, and the checks across fields.
//
// Journey    config.json -> [model_config_parts] -> model_config
#pragma once

#include "engine/checkpoint/json_object.h"
#include "engine/checkpoint/model_config.h"

namespace ember {

// Reads rope_theta with rope_scaling, or transformers 5's rope_parameters, into rope_theta and
// yarn; max_positions must be set. Errors: field, found, expected; kUnsupported for another rope
// type.
Status read_rope(const JsonObject& json, ModelConfig& config);

// Errors: kInvalidArgument naming two fields of `json` that contradict each other, or a zero size.
Status check_model_config(const JsonObject& json, const ModelConfig& config);

}  // namespace ember
