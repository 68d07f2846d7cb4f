// Weights: every tensor fetched by name and shape; converted or transposed only where it must be.
#include "engine/model/weights.h"

#include <set>
#include <string_view>
#include <utility>

#include "engine/checkpoint/model_size.h"
#include "engine/model/weight_placer.h"

namespace ember {
namespace {

constexpr std::string_view kLayerPrefix = "model.layers.";
constexpr const char* kHeadName = "lm_head.weight";
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

// Parts of names that belong to models of another forward pass, and what to call them.
constexpr std::pair<std::string_view, std::string_view> kForeign[] = {
    {".indexer.", "the sparse attention indexer of DeepSeek-V3.2"},
    {".compressor.", "the compressed attention of DeepSeek-V4"},
    {".weight_packed", "packed int4 weights"},
    {".qweight", "packed int4 weights"}};

class Loader {
 public:
  Loader(ModelWeights& weights, const ModelConfig& config, WeightPlacer& placer, Device& device)
      : weights_(weights), config_(config), placer_(placer), device_(device) {}

  Status load(const std::function<void(double)>& progress) {
    EMBER_TRY(refuse_foreign());
    const size_t hidden = config_.hidden;
    EMBER_TRY(placer_.matrix("model.embed_tokens.weight", config_.vocab_size, hidden,
                             weights_.embedding));
    EMBER_TRY(vector("model.norm.weight", hidden, weights_.final_norm));
    EMBER_TRY(load_head());
    weights_.layers.resize(config_.layers);
    for (uint32_t i = 0; i < config_.layers; ++i) {
      const std::string prefix = std::string(kLayerPrefix) + std::to_string(i) + ".";
      LayerWeights& layer = weights_.layers[i];
      EMBER_TRY(vector(prefix + "input_layernorm.weight", hidden, layer.attention_norm));
      EMBER_TRY(vector(prefix + "post_attention_layernorm.weight", hidden, layer.ffn_norm));
      EMBER_TRY(load_attention(prefix + "self_attn.", layer));
      layer.moe = config_.is_moe_layer(i);
      EMBER_TRY(layer.moe ? load_experts(prefix + "mlp.", layer)
                          : load_ffn(prefix + "mlp.", config_.dense_inner, layer));
      if (progress) progress((i + 1.0) / config_.layers);
    }
    EMBER_TRY(refuse_unknown());
    return check_total();
  }

 private:
  Status vector(const std::string& name, size_t size, Weight& weight) {
    return placer_.unrounded(name, {size}, weight);
  }

  // A head that is there is used, whatever the config says of tying.
  bool has_own_head() const {
    return !config_.tied_head || weights_.checkpoint->has(kHeadName);
  }

  Status load_head() {
    if (has_own_head()) {
      return placer_.matrix(kHeadName, config_.vocab_size, config_.hidden, weights_.head);
    }
    weights_.head = weights_.embedding;
    return {};
  }

  Status load_attention(const std::string& prefix, LayerWeights& layer) {
    const size_t heads = config_.heads;
    const size_t query = heads * (size_t{config_.nope_dim} + config_.rope_dim);
    const size_t rank = config_.q_lora_rank;
    if (rank == 0) {
      EMBER_TRY(placer_.linear(prefix + "q_proj.weight", query, config_.hidden, layer.q));
    } else {
      EMBER_TRY(placer_.linear(prefix + "q_a_proj.weight", rank, config_.hidden, layer.q_a));
      EMBER_TRY(vector(prefix + "q_a_layernorm.weight", rank, layer.q_a_norm));
      EMBER_TRY(placer_.linear(prefix + "q_b_proj.weight", query, rank, layer.q_b));
    }
    const size_t latent = config_.kv_lora_rank;
    EMBER_TRY(placer_.linear(prefix + "kv_a_proj_with_mqa.weight", latent + config_.rope_dim,
                             config_.hidden, layer.kv_a));
    EMBER_TRY(vector(prefix + "kv_a_layernorm.weight", latent, layer.kv_a_norm));
    EMBER_TRY(placer_.matrix(prefix + "kv_b_proj.weight",
                             heads * (size_t{config_.nope_dim} + config_.value_dim), latent,
                             layer.kv_b));
    EMBER_TRY(placer_.linear(prefix + "o_proj.weight", config_.hidden, heads * config_.value_dim,
                             layer.o));
    return make_key_absorb(layer);
  }

  Status make_key_absorb(LayerWeights& layer) {
    const size_t rows = size_t{config_.heads} * config_.kv_lora_rank;
    const KeyAbsorbShape shape{config_.heads, config_.nope_dim, config_.value_dim,
                               config_.kv_lora_rank};
    layer.key_absorb = {nullptr, layer.kv_b.dtype, rows, config_.nope_dim, nullptr};
    EMBER_ASSIGN(Buffer buffer,
                 device_.allocate(rows * config_.nope_dim * dtype_bytes(layer.kv_b.dtype)));
    transpose_key_part(shape, layer.kv_b.data, layer.kv_b.dtype, buffer.data());
    layer.key_absorb.data = buffer.data();
    weights_.owned.push_back(std::move(buffer));
    return {};
  }

  Status load_ffn(const std::string& prefix, size_t inner, LayerWeights& layer) {
    EMBER_TRY(placer_.linear(prefix + "gate_proj.weight", inner, config_.hidden, layer.gate));
    EMBER_TRY(placer_.linear(prefix + "up_proj.weight", inner, config_.hidden, layer.up));
    return placer_.linear(prefix + "down_proj.weight", config_.hidden, inner, layer.down);
  }

  Status load_experts(const std::string& prefix, LayerWeights& layer) {
    const size_t experts = config_.routed_experts;
    EMBER_TRY(placer_.unrounded(prefix + "gate.weight", {experts, config_.hidden}, layer.router));
    if (config_.router_score == RouterScore::kSigmoid) {
      EMBER_TRY(
          placer_.floats(prefix + "gate.e_score_correction_bias", experts, layer.router_bias));
    }
    EMBER_TRY(load_routed(prefix + "experts.", layer));
    layer.has_shared = config_.shared_experts > 0;
    if (!layer.has_shared) return {};
    return load_ffn(prefix + "shared_experts.", size_t{config_.shared_experts} * config_.moe_inner,
                    layer);
  }

  // All experts of a layer have one dtype: where they are stored in several, fp32 as soon as one of
  // them needs it, else bf16.
  Status load_routed(const std::string& prefix, LayerWeights& layer) {
    constexpr const char* kParts[] = {"gate_proj", "up_proj", "down_proj"};
    std::vector<std::pair<std::string, Weight>> stored;
    stored.reserve(size_t{config_.routed_experts} * 3);
    std::set<DType> dtypes;
    for (uint32_t e = 0; e < config_.routed_experts; ++e) {
      for (const char* part : kParts) {
        const bool down = part == kParts[2];
        const size_t rows = down ? config_.hidden : config_.moe_inner;
        const size_t cols = down ? config_.moe_inner : config_.hidden;
        const std::string name = prefix + std::to_string(e) + "." + part + ".weight";
        EMBER_ASSIGN(const Weight weight, placer_.stored_matrix(name, rows, cols));
        dtypes.insert(placer_.linear_dtype(weight.dtype));
        stored.emplace_back(name, weight);
      }
    }
    layer.expert_dtype = dtypes.size() == 1         ? *dtypes.begin()
                         : dtypes.contains(DType::kF32) ? DType::kF32
                                                        : DType::kBf16;
    layer.experts.resize(config_.routed_experts);
    for (size_t e = 0; e < layer.experts.size(); ++e) {
      const auto place = [&](size_t part, const void*& data, const float*& scales) -> Status {
        const auto& [name, weight] = stored[3 * e + part];
        EMBER_ASSIGN(const Weight placed, placer_.place(name, weight, layer.expert_dtype));
        data = placed.data;
        scales = placed.scales;
        return {};
      };
      ExpertWeights& expert = layer.experts[e];
      EMBER_TRY(place(0, expert.gate, expert.gate_scales));
      EMBER_TRY(place(1, expert.up, expert.up_scales));
      EMBER_TRY(place(2, expert.down, expert.down_scales));
    }
    return {};
  }

  // Before anything else is missed: tensors that say what this model is.
  Status refuse_foreign() const {
    for (const std::string& name : weights_.checkpoint->names()) {
      for (const auto& [part, what] : kForeign) {
        if (name.find(part) == std::string::npos) continue;
        return Error{ErrorCode::kUnsupported,
                     "tensor " + name + ": " + std::string(what) + " is not supported"};
      }
    }
    return {};
  }

  // A tensor that no part of this model reads means that the model is another one. Layers beyond
  // the configured ones (multi-token prediction) and stored RoPE frequencies are known extras.
  Status refuse_unknown() const {
    for (const std::string& name : weights_.checkpoint->names()) {
      if (placer_.knows(name) || name.ends_with(kInvFreqSuffix)) continue;
      uint64_t layer = 0;
      if (layer_number(name, layer) && layer >= config_.layers) continue;
      return Error{ErrorCode::kUnsupported,
                   "tensor " + name + " is not a part of a " + config_.model_type +
                       " model of this config.json, expected only tensors that it names"};
    }
    return {};
  }

  // The config's own count of parameters, which is compared with the published models' by test.
  Status check_total() const {
    uint64_t expected = count_parameters(config_).total;
    if (config_.tied_head && has_own_head()) {
      expected += uint64_t{config_.vocab_size} * config_.hidden;
    }
    if (placer_.values() == expected) return {};
    return Error{ErrorCode::kCorruption,
                 "the checkpoint's tensors hold " + std::to_string(placer_.values()) +
                     " parameters, expected " + std::to_string(expected) + " by its config.json"};
  }

  ModelWeights& weights_;
  const ModelConfig& config_;
  WeightPlacer& placer_;
  Device& device_;
};

}  // namespace

Result<std::unique_ptr<ModelWeights>> load_weights(std::shared_ptr<Checkpoint> checkpoint,
                                                   const ModelConfig& config, DType precision,
                                                   Device& device,
                                                   const std::function<void(double)>& progress,
                                                   WeightForm form) {
  EMBER_CHECK(precision == DType::kBf16 || precision == DType::kF32, "precision is bf16 or fp32");
  auto weights = std::make_unique<ModelWeights>();
  weights->config = config;
  weights->checkpoint = std::move(checkpoint);
  WeightPlacer placer(*weights, precision, form, device);
  EMBER_TRY(Loader(*weights, config, placer, device).load(progress));
  return weights;
}

}  // namespace ember
