// Weights: every tensor fetched by name and shape; converted or transposed only where it must be.
#include "engine/model/weights.h"

#include <set>
#include <string_view>
#include <utility>

#include "engine/model/weight_convert.h"

namespace ember {
namespace {

constexpr std::string_view kLayerPrefix = "model.layers.";
constexpr std::string_view kInvFreqSuffix = "rotary_emb.inv_freq";

// The layer number in "model.layers.12.x", or nothing for tensors outside the layers.
bool layer_number(const std::string& name, uint64_t& layer) {
  if (!name.starts_with(kLayerPrefix)) return false;
  layer = 0;
  size_t at = kLayerPrefix.size();
  const size_t first_digit = at;
  while (at < name.size() && name[at] >= '0' && name[at] <= '9' && at - first_digit < 10) {
    layer = layer * 10 + static_cast<uint64_t>(name[at++] - '0');
  }
  return at > first_digit && at < name.size() && name[at] == '.';
}

class Loader {
 public:
  Loader(std::shared_ptr<Checkpoint> checkpoint, const ModelConfig& config, DType precision,
         Device& device)
      : config_(config), precision_(precision), device_(device) {
    weights_ = std::make_unique<ModelWeights>();
    weights_->config = config;
    weights_->checkpoint = std::move(checkpoint);
  }

  Status load(const std::function<void(double)>& progress) {
    const size_t hidden = config_.hidden;
    EMBER_TRY(matrix("model.embed_tokens.weight", config_.vocab_size, hidden, weights_->embedding));
    EMBER_TRY(vector("model.norm.weight", hidden, weights_->final_norm));
    EMBER_TRY(load_head());
    weights_->layers.resize(config_.layers);
    for (uint32_t i = 0; i < config_.layers; ++i) {
      const std::string prefix = std::string(kLayerPrefix) + std::to_string(i) + ".";
      LayerWeights& layer = weights_->layers[i];
      EMBER_TRY(vector(prefix + "input_layernorm.weight", hidden, layer.attention_norm));
      EMBER_TRY(vector(prefix + "post_attention_layernorm.weight", hidden, layer.ffn_norm));
      EMBER_TRY(load_attention(prefix + "self_attn.", layer));
      layer.moe = config_.is_moe_layer(i);
      EMBER_TRY(layer.moe ? load_experts(prefix + "mlp.", layer)
                          : load_ffn(prefix + "mlp.", config_.dense_inner, layer));
      if (progress) progress((i + 1.0) / config_.layers);
    }
    return refuse_unknown();
  }

  std::unique_ptr<ModelWeights> take() { return std::move(weights_); }

 private:
  // In bf16 mode matrices are bf16; in fp32 mode bf16 stays, since the kernels widen it exactly.
  DType matrix_dtype(DType stored) const {
    if (precision_ == DType::kBf16 || stored == DType::kBf16) return DType::kBf16;
    return DType::kF32;
  }

  Result<TensorView> fetch(const std::string& name, const std::vector<size_t>& shape) {
    known_.insert(name);
    return weights_->checkpoint->tensor(name, shape);
  }

  // `view` as the kernels read it: mapped where dtype and alignment allow, else converted and
  // owned.
  Result<const void*> place(const TensorView& view, DType dtype) {
    const auto address = reinterpret_cast<uintptr_t>(view.bytes.data());
    if (view.dtype == dtype && address % dtype_bytes(dtype) == 0) {
      return static_cast<const void*>(view.bytes.data());
    }
    EMBER_ASSIGN(Buffer buffer, device_.allocate(view.elements() * dtype_bytes(dtype)));
    convert_values(view.bytes.data(), view.dtype, buffer.data(), dtype, view.elements());
    weights_->owned.push_back(std::move(buffer));
    return static_cast<const void*>(weights_->owned.back().data());
  }

  Status matrix(const std::string& name, size_t rows, size_t cols, Weight& weight) {
    EMBER_ASSIGN(const TensorView view, fetch(name, {rows, cols}));
    weight = {nullptr, matrix_dtype(view.dtype), rows, cols};
    EMBER_ASSIGN(weight.data, place(view, weight.dtype));
    return {};
  }

  // Norms and the router are used at the width they are stored in: rounding them saves nothing.
  Status unrounded(const std::string& name, const std::vector<size_t>& shape, Weight& weight) {
    EMBER_ASSIGN(const TensorView view, fetch(name, shape));
    const DType dtype = view.dtype == DType::kBf16 ? DType::kBf16 : DType::kF32;
    weight = {nullptr, dtype, shape.front(), shape.size() > 1 ? shape.back() : 1};
    EMBER_ASSIGN(weight.data, place(view, dtype));
    return {};
  }

  Status vector(const std::string& name, size_t size, Weight& weight) {
    return unrounded(name, {size}, weight);
  }

  Status load_head() {
    const std::string name = "lm_head.weight";
    if (config_.tied_head && !weights_->checkpoint->has(name)) {
      weights_->head = weights_->embedding;
      return {};
    }
    return matrix(name, config_.vocab_size, config_.hidden, weights_->head);
  }

  Status load_attention(const std::string& prefix, LayerWeights& layer) {
    const size_t heads = config_.heads;
    const size_t query = heads * (size_t{config_.nope_dim} + config_.rope_dim);
    const size_t rank = config_.q_lora_rank;
    if (rank == 0) {
      EMBER_TRY(matrix(prefix + "q_proj.weight", query, config_.hidden, layer.q));
    } else {
      EMBER_TRY(matrix(prefix + "q_a_proj.weight", rank, config_.hidden, layer.q_a));
      EMBER_TRY(vector(prefix + "q_a_layernorm.weight", rank, layer.q_a_norm));
      EMBER_TRY(matrix(prefix + "q_b_proj.weight", query, rank, layer.q_b));
    }
    const size_t latent = config_.kv_lora_rank;
    EMBER_TRY(matrix(prefix + "kv_a_proj_with_mqa.weight", latent + config_.rope_dim,
                     config_.hidden, layer.kv_a));
    EMBER_TRY(vector(prefix + "kv_a_layernorm.weight", latent, layer.kv_a_norm));
    EMBER_TRY(matrix(prefix + "kv_b_proj.weight",
                     heads * (size_t{config_.nope_dim} + config_.value_dim), latent, layer.kv_b));
    EMBER_TRY(matrix(prefix + "o_proj.weight", config_.hidden, heads * config_.value_dim, layer.o));
    return make_key_absorb(layer);
  }

  Status make_key_absorb(LayerWeights& layer) {
    const size_t rows = size_t{config_.heads} * config_.kv_lora_rank;
    const KeyAbsorbShape shape{config_.heads, config_.nope_dim, config_.value_dim,
                               config_.kv_lora_rank};
    layer.key_absorb = {nullptr, layer.kv_b.dtype, rows, config_.nope_dim};
    EMBER_ASSIGN(Buffer buffer,
                 device_.allocate(rows * config_.nope_dim * dtype_bytes(layer.kv_b.dtype)));
    transpose_key_part(shape, layer.kv_b.data, layer.kv_b.dtype, buffer.data());
    layer.key_absorb.data = buffer.data();
    weights_->owned.push_back(std::move(buffer));
    return {};
  }

  Status load_ffn(const std::string& prefix, size_t inner, LayerWeights& layer) {
    EMBER_TRY(matrix(prefix + "gate_proj.weight", inner, config_.hidden, layer.gate));
    EMBER_TRY(matrix(prefix + "up_proj.weight", inner, config_.hidden, layer.up));
    return matrix(prefix + "down_proj.weight", config_.hidden, inner, layer.down);
  }

  Status load_experts(const std::string& prefix, LayerWeights& layer) {
    const size_t experts = config_.routed_experts;
    EMBER_TRY(unrounded(prefix + "gate.weight", {experts, config_.hidden}, layer.router));
    EMBER_ASSIGN(const TensorView bias, fetch(prefix + "gate.e_score_correction_bias", {experts}));
    layer.router_bias.resize(experts);
    convert_values(bias.bytes.data(), bias.dtype, layer.router_bias.data(), DType::kF32, experts);
    EMBER_TRY(load_routed(prefix + "experts.", layer));
    layer.has_shared = config_.shared_experts > 0;
    if (!layer.has_shared) return {};
    return load_ffn(prefix + "shared_experts.", size_t{config_.shared_experts} * config_.moe_inner,
                    layer);
  }

  // All experts of a layer have one dtype: fp32 as soon as one of them needs it.
  Status load_routed(const std::string& prefix, LayerWeights& layer) {
    constexpr const char* kParts[] = {"gate_proj", "up_proj", "down_proj"};
    std::vector<TensorView> views;
    views.reserve(size_t{config_.routed_experts} * 3);
    layer.expert_dtype = DType::kBf16;
    for (uint32_t e = 0; e < config_.routed_experts; ++e) {
      for (const char* part : kParts) {
        const bool down = part == kParts[2];
        const size_t rows = down ? config_.hidden : config_.moe_inner;
        const size_t cols = down ? config_.moe_inner : config_.hidden;
        EMBER_ASSIGN(TensorView view,
                     fetch(prefix + std::to_string(e) + "." + part + ".weight", {rows, cols}));
        if (matrix_dtype(view.dtype) == DType::kF32) layer.expert_dtype = DType::kF32;
        views.push_back(std::move(view));
      }
    }
    layer.experts.resize(config_.routed_experts);
    for (size_t e = 0; e < layer.experts.size(); ++e) {
      EMBER_ASSIGN(layer.experts[e].gate, place(views[3 * e], layer.expert_dtype));
      EMBER_ASSIGN(layer.experts[e].up, place(views[3 * e + 1], layer.expert_dtype));
      EMBER_ASSIGN(layer.experts[e].down, place(views[3 * e + 2], layer.expert_dtype));
    }
    return {};
  }

  // A tensor that no part of this model reads means that the model is another one. Layers beyond
  // the configured ones (multi-token prediction) and stored RoPE frequencies are known extras.
  Status refuse_unknown() const {
    for (const std::string& name : weights_->checkpoint->names()) {
      if (known_.contains(name) || name.ends_with(kInvFreqSuffix)) continue;
      uint64_t layer = 0;
      if (layer_number(name, layer) && layer >= config_.layers) continue;
      return Error{ErrorCode::kUnsupported,
                   "tensor " + name + " is not a part of a " + config_.model_type +
                       " model of this config.json, expected only tensors that it names"};
    }
    return {};
  }

  const ModelConfig& config_;
  DType precision_;
  Device& device_;
  std::unique_ptr<ModelWeights> weights_;
  std::set<std::string> known_;
};

}  // namespace

Result<std::unique_ptr<ModelWeights>> load_weights(std::shared_ptr<Checkpoint> checkpoint,
                                                   const ModelConfig& config, DType precision,
                                                   Device& device,
                                                   const std::function<void(double)>& progress) {
  EMBER_CHECK(precision == DType::kBf16 || precision == DType::kF32, "precision is bf16 or fp32");
  Loader loader(std::move(checkpoint), config, precision, device);
  EMBER_TRY(loader.load(progress));
  return loader.take();
}

}  // namespace ember
