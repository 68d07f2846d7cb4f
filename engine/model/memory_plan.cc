// Memory plan: sums over the tensors of a config.
#include "engine/model/memory_plan.h"

#include "base/dtype.h"
#include "kernels/latent_row.h"
#include "kernels/simd.h"

namespace ember {
namespace {

constexpr uint64_t kHalf = 2;   // bf16
constexpr uint64_t kFloat = 4;  // fp32

uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// One matrix and its scales.
uint64_t matrix_bytes(const TensorGroup& group, WeightPrecision precision) {
  const uint64_t values = group.rows * group.cols;
  switch (precision) {
    case WeightPrecision::kBf16:
      return values * kHalf;
    case WeightPrecision::kFp8:
      return values +
             ceil_div(group.rows, kScaleBlock) * ceil_div(group.cols, kScaleBlock) * kFloat;
    case WeightPrecision::kInt8:
      return values + group.rows * kFloat;
  }
  return 0;
}

}  // namespace

WeightBytes weight_bytes(const ModelConfig& config, WeightPrecision precision) {
  WeightBytes bytes;
  for (const TensorGroup& group : model_tensors(config)) {
    const bool linear = group.role == TensorRole::kLinear || group.role == TensorRole::kExpert;
    const bool key_value = group.role == TensorRole::kKeyValue;
    uint64_t stored = group.values() * kHalf;
    uint64_t memory = stored;
    if (group.role == TensorRole::kRouterBias) stored = memory = group.values() * kFloat;
    if (linear) stored = memory = matrix_bytes(group, precision) * group.count;
    if (key_value && precision == WeightPrecision::kFp8) {
      stored = matrix_bytes(group, precision) * group.count;
    }
    bytes.stored += stored;
    bytes.memory += memory;
  }
  const uint64_t key_values = uint64_t{config.heads} * config.kv_lora_rank * config.nope_dim;
  bytes.memory += config.layers * key_values * kHalf;
  return bytes;
}

TokenBytes token_bytes(const ModelConfig& config) {
  const auto row = [&](DType dtype) -> uint64_t {
    return config.layers * latent_row_bytes(dtype, config.kv_lora_rank, config.rope_dim);
  };
  const uint64_t head = uint64_t{config.nope_dim} + config.rope_dim + config.value_dim;
  return {row(DType::kBf16), row(DType::kF8E4M3), config.layers * config.heads * head * kHalf};
}

uint64_t fitting_sequences(const FitQuestion& q) {
  if (q.memory_bytes <= q.weight_bytes) return 0;
  const uint64_t blocks = ceil_div(q.tokens, q.block_tokens);
  return (q.memory_bytes - q.weight_bytes) / (blocks * q.block_tokens * q.token_bytes);
}

}  // namespace ember
