// Random model: weights of variance 1 / inputs, norms about 1, as deepseek_v3 or deepseek_v2.
#include "tools/make_random_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numbers>
#include <vector>

#include "base/prng.h"
#include "engine/checkpoint/safetensors.h"

namespace ember {
namespace {

class Gaussian {
 public:
  explicit Gaussian(uint64_t seed) : prng_(seed) {}
  // Box-Muller; 1 - u lies in (0, 1].
  double operator()() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - prng_.uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * prng_.uniform());
  }

 private:
  Prng prng_;
};

using Bytes = std::vector<std::byte>;

// Values of a common row; odd, so that where it begins anew no row of a matrix does.
constexpr size_t kRowValues = (size_t{1} << 22) - 3;
constexpr size_t kLeastShared = size_t{1} << 18;  // smaller matrices are drawn

class RandomTensors {
 public:
  RandomTensors(const ModelConfig& config, uint64_t seed, DType dtype, RandomDraw draw)
      : config_(config), gaussian_(seed), places_(seed + 1), dtype_(dtype), draw_(draw) {}

  // They may be made as long as this object lives.
  std::vector<TensorToMake> make() {
    const size_t d = config_.hidden;
    matrix("model.embed_tokens.weight", config_.vocab_size, d, 1.0);
    vector("model.norm.weight", d);
    if (!config_.tied_head) matrix("lm_head.weight", config_.vocab_size, d);
    for (uint32_t i = 0; i < config_.layers; ++i) {
      const std::string prefix = "model.layers." + std::to_string(i) + ".";
      vector(prefix + "input_layernorm.weight", d);
      vector(prefix + "post_attention_layernorm.weight", d);
      attention(prefix + "self_attn.");
      if (config_.is_moe_layer(i)) {
        experts(prefix + "mlp.");
      } else {
        feed_forward(prefix + "mlp.", config_.dense_inner);
      }
    }
    return std::move(tensors_);
  }

 private:
  void attention(const std::string& prefix) {
    const size_t d = config_.hidden;
    const size_t heads = config_.heads;
    const size_t query = heads * (size_t{config_.nope_dim} + config_.rope_dim);
    if (config_.q_lora_rank == 0) {
      matrix(prefix + "q_proj.weight", query, d);
    } else {
      matrix(prefix + "q_a_proj.weight", config_.q_lora_rank, d);
      vector(prefix + "q_a_layernorm.weight", config_.q_lora_rank);
      matrix(prefix + "q_b_proj.weight", query, config_.q_lora_rank);
    }
    const size_t latent = config_.kv_lora_rank;
    matrix(prefix + "kv_a_proj_with_mqa.weight", latent + config_.rope_dim, d);
    vector(prefix + "kv_a_layernorm.weight", latent);
    matrix(prefix + "kv_b_proj.weight", heads * (size_t{config_.nope_dim} + config_.value_dim),
           latent);
    matrix(prefix + "o_proj.weight", d, heads * config_.value_dim);
  }

  void feed_forward(const std::string& prefix, size_t inner) {
    matrix(prefix + "gate_proj.weight", inner, config_.hidden);
    matrix(prefix + "up_proj.weight", inner, config_.hidden);
    matrix(prefix + "down_proj.weight", config_.hidden, inner);
  }

  void experts(const std::string& prefix) {
    matrix(prefix + "gate.weight", config_.routed_experts, config_.hidden);
    if (config_.router_score == RouterScore::kSigmoid) {
      add(prefix + "gate.e_score_correction_bias", DType::kF32, {config_.routed_experts}, 0.0,
          0.05);
    }
    for (uint32_t e = 0; e < config_.routed_experts; ++e) {
      feed_forward(prefix + "experts." + std::to_string(e) + ".", config_.moe_inner);
    }
    if (config_.shared_experts > 0) {
      feed_forward(prefix + "shared_experts.", size_t{config_.shared_experts} * config_.moe_inner);
    }
  }

  void matrix(const std::string& name, size_t rows, size_t cols) {
    matrix(name, rows, cols, 1.0 / std::sqrt(static_cast<double>(cols)));
  }
  void matrix(const std::string& name, size_t rows, size_t cols, double deviation) {
    add(name, dtype_, {rows, cols}, 0.0, deviation);
  }
  void vector(const std::string& name, size_t size) { add(name, dtype_, {size}, 1.0, 0.1); }

  void add(const std::string& name, DType dtype, std::vector<size_t> shape, double mean,
           double deviation) {
    const size_t count = TensorView{dtype, shape, {}}.elements();
    if (draw_ == RandomDraw::kShared && dtype == dtype_ && count >= kLeastShared) {
      Bytes& row = rows_[deviation];
      if (row.empty()) row = draw(kRowValues, dtype, mean, deviation);
      const size_t width = dtype_bytes(dtype);
      tensors_.push_back({name, dtype, std::move(shape),
                          [&row, at = places_.below(kRowValues) * width, bytes = count * width](
                              const TensorToMake::Write& write) {
                            return write_cut(row, at, bytes, write);
                          }});
      return;
    }
    tensors_.push_back({name, dtype, std::move(shape),
                        [bytes = draw(count, dtype, mean, deviation)](
                            const TensorToMake::Write& write) { return write(bytes); }});
  }

  Bytes draw(size_t count, DType dtype, double mean, double deviation) {
    Bytes bytes(count * dtype_bytes(dtype));
    for (size_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(mean + deviation * gaussian_());
      if (dtype == DType::kF32) {
        std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
      } else {
        const bf16 rounded = to_bf16(value);
        std::memcpy(bytes.data() + i * sizeof rounded, &rounded, sizeof rounded);
      }
    }
    return bytes;
  }

  // `bytes` bytes of the row from `at` on, around its end as often as it takes.
  static Status write_cut(const Bytes& row, size_t at, size_t bytes,
                          const TensorToMake::Write& write) {
    while (bytes > 0) {
      const size_t piece = std::min(row.size() - at, bytes);
      EMBER_TRY(write(ConstBytes(row).subspan(at, piece)));
      at = 0;
      bytes -= piece;
    }
    return {};
  }

  const ModelConfig& config_;
  Gaussian gaussian_;
  Prng places_;
  DType dtype_;
  RandomDraw draw_;
  std::map<double, Bytes> rows_;  // by deviation
  std::vector<TensorToMake> tensors_;
};

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string yarn_json(const YarnConfig& yarn) {
  if (!yarn.active) return "null";
  std::string text = R"({"type": "yarn", "factor": )" + number(yarn.factor) +
                     R"(, "original_max_position_embeddings": )" + number(yarn.original_positions) +
                     R"(, "beta_fast": )" + number(yarn.beta_fast) + R"(, "beta_slow": )" +
                     number(yarn.beta_slow);
  if (yarn.mscale != 0) text += R"(, "mscale": )" + number(yarn.mscale);
  if (yarn.mscale_all_dim != 0) text += R"(, "mscale_all_dim": )" + number(yarn.mscale_all_dim);
  return text + "}";
}

std::string config_json(const ModelConfig& c, DType dtype) {
  std::string text = "{\n";
  const auto field = [&text](const char* name, const std::string& value) {
    text += "  \"" + std::string(name) + "\": " + value + ",\n";
  };
  const bool softmax = c.router_score == RouterScore::kSoftmax;
  field("architectures", softmax ? R"(["DeepseekV2ForCausalLM"])" : R"(["DeepseekV3ForCausalLM"])");
  field("model_type", softmax ? R"("deepseek_v2")" : R"("deepseek_v3")");
  field("vocab_size", std::to_string(c.vocab_size));
  field("hidden_size", std::to_string(c.hidden));
  field("intermediate_size", std::to_string(c.dense_inner));
  field("moe_intermediate_size", std::to_string(c.moe_inner));
  field("num_hidden_layers", std::to_string(c.layers));
  field("num_attention_heads", std::to_string(c.heads));
  field("num_key_value_heads", std::to_string(c.heads));
  field("q_lora_rank", c.q_lora_rank == 0 ? "null" : std::to_string(c.q_lora_rank));
  field("kv_lora_rank", std::to_string(c.kv_lora_rank));
  field("qk_nope_head_dim", std::to_string(c.nope_dim));
  field("qk_rope_head_dim", std::to_string(c.rope_dim));
  field("v_head_dim", std::to_string(c.value_dim));
  field("n_routed_experts", c.routed_experts == 0 ? "null" : std::to_string(c.routed_experts));
  field("n_shared_experts", std::to_string(c.shared_experts));
  field("num_experts_per_tok", std::to_string(c.experts_per_token));
  field("first_k_dense_replace", std::to_string(c.first_dense_layers));
  field("moe_layer_freq", std::to_string(c.moe_layer_freq));
  field("n_group", std::to_string(c.expert_groups));
  field("topk_group", std::to_string(c.top_groups));
  field("norm_topk_prob", c.normalize_routes ? "true" : "false");
  field("routed_scaling_factor", number(double{c.routed_scale}));
  field("scoring_func", softmax ? R"("softmax")" : R"("sigmoid")");
  field("topk_method", softmax ? R"("group_limited_greedy")" : R"("noaux_tc")");
  field("rope_theta", number(c.rope_theta));
  field("rope_scaling", yarn_json(c.yarn));
  field("max_position_embeddings", std::to_string(c.max_positions));
  field("rms_norm_eps", number(double{c.norm_eps}));
  field("hidden_act", R"("silu")");
  field("tie_word_embeddings", c.tied_head ? "true" : "false");
  field("attention_bias", "false");
  field("bos_token_id", std::to_string(c.bos_id));
  field("eos_token_id", std::to_string(c.eos_ids.empty() ? 1 : c.eos_ids.front()));
  text += R"(  "torch_dtype": )";
  text += dtype == DType::kF32 ? "\"float32\"\n}\n" : "\"bfloat16\"\n}\n";
  return text;
}

Status write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return Error{ErrorCode::kIo, path + ": cannot be written"};
  return {};
}

}  // namespace

Status make_random_model(const ModelConfig& config, uint64_t seed, DType dtype,
                         const std::string& folder, RandomDraw draw) {
  EMBER_CHECK(dtype == DType::kBf16 || dtype == DType::kF32, "weights are bf16 or fp32");
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    return Error{ErrorCode::kIo, folder + ": cannot be made: " + failed.message()};
  }
  EMBER_TRY(write_text(folder + "/config.json", config_json(config, dtype)));
  const std::string eos = std::to_string(config.eos_ids.empty() ? 1 : config.eos_ids.front());
  EMBER_TRY(write_text(folder + "/generation_config.json",
                       "{\"bos_token_id\": " + std::to_string(config.bos_id) +
                           ", \"eos_token_id\": " + eos + "}\n"));
  RandomTensors tensors(config, seed, dtype, draw);
  return stream_safetensors(folder + "/model.safetensors", tensors.make());
}

}  // namespace ember
