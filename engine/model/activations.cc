// Activations: sizes from the config and the step's limits.
#include "engine/model/activations.h"

#include <algorithm>

namespace ember {
namespace {

struct Want {
  Buffer Activations::*buffer;
  size_t bytes;
};

Status allocate_all(const std::vector<Want>& wants, Device& device, Activations& activations) {
  for (const Want& want : wants) {
    if (want.bytes == 0) continue;
    EMBER_ASSIGN(activations.*want.buffer, device.allocate(want.bytes));
  }
  return {};
}

std::vector<Want> attention_wants(const ModelConfig& c, const ForwardOptions& options) {
  const size_t rows = options.max_rows;
  const size_t value = dtype_bytes(options.precision);
  const size_t heads = c.heads;
  const bool absorb = options.attention == AttentionForm::kAbsorb || options.both_forms;
  const size_t latents = absorb ? rows * heads * c.kv_lora_rank * sizeof(float) : 0;
  return {
      {&Activations::hidden, rows * c.hidden * value},
      {&Activations::normed, rows * c.hidden * value},
      {&Activations::branch, rows * c.hidden * value},
      {&Activations::query_low, rows * c.q_lora_rank * value},
      {&Activations::query_low_normed, rows * c.q_lora_rank * value},
      {&Activations::query, rows * heads * (size_t{c.nope_dim} + c.rope_dim) * sizeof(float)},
      {&Activations::query_latent, latents},
      {&Activations::mixed_latent, latents},
      {&Activations::values, rows * heads * c.value_dim * value},
      {&Activations::latent, rows * (size_t{c.kv_lora_rank} + c.rope_dim) * sizeof(float)},
  };
}

std::vector<Want> ffn_wants(const ModelWeights& weights, const ForwardOptions& options) {
  const ModelConfig& c = weights.config;
  const size_t rows = options.max_rows;
  size_t inner = 0;
  bool any_moe = false;
  bool any_shared = false;
  for (const LayerWeights& layer : weights.layers) {
    inner = std::max(inner, layer.gate.rows);
    any_moe = any_moe || layer.moe;
    any_shared = any_shared || layer.has_shared;
  }
  const size_t inner_bytes = rows * inner * dtype_bytes(options.precision);
  const size_t routes = any_moe ? rows * c.experts_per_token : 0;
  return {
      {&Activations::gate, inner_bytes},
      {&Activations::up, inner_bytes},
      {&Activations::shared, any_shared ? rows * c.hidden * sizeof(float) : 0},
      {&Activations::route_ids, routes * sizeof(int32_t)},
      {&Activations::route_weights, routes * sizeof(float)},
      {&Activations::expert_work,
       any_moe ? expert_ffn_workspace_bytes(expert_ffn_shape(c, options.precision, rows)) : 0},
  };
}

}  // namespace

ExpertFfnParams expert_ffn_shape(const ModelConfig& config, DType precision, size_t rows) {
  ExpertFfnParams params;
  params.rows = rows;
  params.width = config.hidden;
  params.inner = config.moe_inner;
  params.experts = config.routed_experts;
  params.top_k = config.experts_per_token;
  params.dtype = precision;
  return params;
}

Result<Activations> allocate_activations(const ModelWeights& weights, const ForwardOptions& options,
                                         Device& device) {
  const ModelConfig& c = weights.config;
  const size_t last = options.max_logit_rows * c.hidden * dtype_bytes(options.precision);
  const size_t logits = options.max_logit_rows * c.vocab_size * sizeof(float);
  const size_t sampled = options.max_sequences * sizeof(int32_t);
  Activations activations;
  EMBER_TRY(allocate_all(attention_wants(c, options), device, activations));
  EMBER_TRY(allocate_all(ffn_wants(weights, options), device, activations));
  EMBER_TRY(allocate_all({{&Activations::last_hidden, last},
                          {&Activations::last_normed, last},
                          {&Activations::logits, logits},
                          {&Activations::sampled, sampled}},
                         device, activations));
  if (logits > 0) {
    EMBER_ASSIGN(activations.logits_down, device.allocate_pinned(logits));
  }
  EMBER_ASSIGN(activations.sampled_down, device.allocate_pinned(sampled));
  return activations;
}

}  // namespace ember
