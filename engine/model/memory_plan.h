// Memory plan: how many bytes a model's weights and cache take, and what fits a memory; without
// weights.
//
// Journey    model_config -> [memory_plan] -> emberkv plan
// Invariant  pure; bytes are those that load_weights and model_kv_layout would use
// Not here   activations, code and buffers, which come on top
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/model_size.h"

namespace ember {

// What the linear layers are held in; the rest is bf16 (the router's bias fp32).
enum class WeightPrecision : uint8_t { kBf16, kFp8, kInt8 };

struct WeightBytes {
  uint64_t stored = 0;  // as a checkpoint; int8 is made at load, from a bf16 one
  uint64_t memory = 0;  // as loaded: kv_b in bf16, and W_UK once more, transposed
};
WeightBytes weight_bytes(const ModelConfig& config, WeightPrecision precision);

// Bytes of a token in all layers.
struct TokenBytes {
  uint64_t bf16 = 0;
  uint64_t fp8 = 0;
  uint64_t expanded = 0;  // what keys and values of every head would take in bf16
};
TokenBytes token_bytes(const ModelConfig& config);

// How many sequences of `tokens` tokens fit beside the weights, in whole blocks of `block_tokens`.
struct FitQuestion {
  uint64_t memory_bytes = 0;
  uint64_t weight_bytes = 0;
  uint64_t token_bytes = 0;
  uint64_t tokens = 0;
  uint64_t block_tokens = 64;
};
uint64_t fitting_sequences(const FitQuestion& question);

}  // namespace ember
