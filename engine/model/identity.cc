// Identity: the fields of a namespace, and the name of a numerics build.
#include "engine/model/identity.h"

#include <cstdio>

#include "base/bytes.h"
#include "kernels/latent_row.h"
#include "store/namespace_identity.h"

namespace ember {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

// Every bit of the number, readable: two configs differ here exactly when they differ in
// arithmetic.
std::string exact(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string rope_text(const ModelConfig& config) {
  std::string text =
      "interleaved theta=" + exact(config.rope_theta) + " dims=" + std::to_string(config.rope_dim);
  const YarnConfig& yarn = config.yarn;
  if (!yarn.active) return text + " plain";
  return text + " yarn factor=" + exact(yarn.factor) +
         " original=" + exact(yarn.original_positions) + " beta_fast=" + exact(yarn.beta_fast) +
         " beta_slow=" + exact(yarn.beta_slow) + " mscale=" + exact(yarn.mscale) +
         " mscale_all_dim=" + exact(yarn.mscale_all_dim) +
         " attention_factor=" + exact(yarn.attention_factor) +
         " truncate=" + (yarn.truncate ? "yes" : "no");
}

std::string layout_text(const KvLayout& layout) {
  const Stream& stream = layout.stream();
  return "mla layers=" + std::to_string(layout.layers()) +
         " block_tokens=" + std::to_string(layout.block_tokens()) +
         " row_values=" + std::to_string(stream.row_values) +
         " scale_rule=" + (stream.scale_rule == ScaleRule::kNone ? "none" : "largest of 128");
}

// The experts' choice and the softmax shape every later latent, and are in no tensor.
std::string routing_text(const ModelConfig& config) {
  const bool softmax = config.router_score == RouterScore::kSoftmax;
  return std::string(softmax ? "softmax" : "sigmoid") +
         " groups=" + std::to_string(config.expert_groups) +
         " top_groups=" + std::to_string(config.top_groups) +
         " experts_per_token=" + std::to_string(config.experts_per_token) +
         " normalize=" + (config.normalize_routes ? "yes" : "no") +
         " scale=" + exact(config.routed_scale);
}

// Rounding weights to int8 changes every latent. What the checkpoint itself stores, its fingerprint
// says. Beside rows in fp8, activations are bf16.
std::string gemm_text(DType cache_dtype, WeightForm weight_form) {
  const DType activations = cache_dtype == DType::kF8E4M3 ? DType::kBf16 : cache_dtype;
  std::string text = std::string(dtype_name(activations)) + " activations, fp32 sums";
  if (weight_form == WeightForm::kInt8) text += ", int8 weights by row";
  return text;
}

}  // namespace

KvLayout model_kv_layout(const ModelConfig& config, DType cache_dtype, uint32_t block_tokens,
                         uint32_t layers_per_group) {
  Stream stream;
  stream.dtype = cache_dtype;
  stream.row_values = config.kv_lora_rank + config.rope_dim;
  if (cache_dtype == DType::kF8E4M3) {
    stream.kind = StreamKind::kMlaFp8Row;
    stream.scale_rule = ScaleRule::kLargest;
    const size_t bytes = latent_row_bytes(cache_dtype, config.kv_lora_rank, config.rope_dim);
    stream.row_values = static_cast<uint32_t>(bytes);
  }
  return KvLayout(config.layers, block_tokens, stream, layers_per_group);
}

Identity make_identity(const ModelConfig& config, const BlockHash& weights_fingerprint,
                       const KvLayout& layout, const Device& device, AttentionMode mode,
                       WeightForm weight_form) {
  Identity identity;
  const DType cache_dtype = layout.stream().dtype;
  identity.fields = {
      {"weights", to_hex(as_bytes(weights_fingerprint.view()))},
      {"model_type", config.model_type},
      {"layout", layout_text(layout)},
      {"heads", std::to_string(config.heads) + "x" + std::to_string(config.nope_dim) + "+" +
                    std::to_string(config.rope_dim)},
      {"rope", rope_text(config)},
      {"routing", routing_text(config)},
      {"norm_eps", exact(config.norm_eps)},
      {"inner_norm_eps", exact(config.inner_norm_eps)},
      {"cache_dtype", std::string(dtype_name(cache_dtype))},
      {"gemm_mode", gemm_text(cache_dtype, weight_form)},
      {"norm_rounding", "fp32, rounded once"},
      {"adapter", "none"},
  };
  identity.name_space = namespace_hash(identity.fields, layout);

  const NumericsBuild build = numerics_build(device, mode);
  identity.numerics_build_text = build.text;
  identity.numerics_build = build.hash;
  return identity;
}

NumericsBuild numerics_build(const Device& device, AttentionMode mode) {
  NumericsBuild build;
  build.text = device.kernel_family() + "/" + attention_mode_name(mode);
  build.hash = checksum64(as_bytes(build.text));
  return build;
}

}  // namespace ember
