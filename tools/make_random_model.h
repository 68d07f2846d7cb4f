// Random model: a Hugging Face folder of any dimensions with seeded weights, for tests and benches.
//
// Journey    dimensions + seed -> [make_random_model] -> checkpoint folder
// Invariant  the same dimensions and seed give the same bytes; activations keep a sane size
// Not here   tokenizer files (such a model is fed token ids)
#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "engine/checkpoint/model_config.h"

namespace ember {

// kEach: every weight is drawn. kShared: large matrices are cut from a common row of drawn values,
// each from a place of its own, so that gigabytes are made in seconds: for speed, not for meaning.
enum class RandomDraw : uint8_t { kEach, kShared };

// Writes config.json, generation_config.json and model.safetensors with matrices in `dtype` (kBf16
// or kF32) into `folder`, which is made where it is absent.
Status make_random_model(const ModelConfig& config, uint64_t seed, DType dtype,
                         const std::string& folder, RandomDraw draw = RandomDraw::kEach);

}  // namespace ember
