// Model size: which tensors a config implies and how many parameters they hold, without weights.
//
// Journey    model_config -> [model_size] -> the loader's self-test, emberkv plan
// Invariant  pure; the totals are those of the published checkpoints
// Not here   names of tensors (model/weights), what fits a memory (tools)
#pragma once

#include <cstdint>
#include <vector>

#include "engine/checkpoint/model_config.h"

namespace ember {

// What a tensor is for; precision depends on it. kLinear: the projections that fp8 checkpoints
// quantise, kKeyValue (kv_b) and kExpert (routed) among them but told apart.
enum class TensorRole : uint8_t {
  kEmbedding,
  kHead,
  kNorm,
  kRouter,
  kRouterBias,
  kLinear,
  kKeyValue,
  kExpert
};

// `count` tensors [rows, cols], of which a token's forward pass reads `active`.
struct TensorGroup {
  TensorRole role = TensorRole::kLinear;
  uint64_t rows = 0;
  uint64_t cols = 1;
  uint64_t count = 0;
  uint64_t active = 0;
  uint64_t values() const { return rows * cols * count; }
};

std::vector<TensorGroup> model_tensors(const ModelConfig& config);

struct ParameterCount {
  uint64_t total = 0;
  uint64_t active = 0;  // without the experts that a token does not visit
};
ParameterCount count_parameters(const ModelConfig& config);

}  // namespace ember
