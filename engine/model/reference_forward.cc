// Reference forward: one token row at a time, every product a plain loop over widened weights.
#include "engine/model/reference_forward.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engine/model/layer_program.h"
#include "engine/model/weight_convert.h"
#include "kernels/expert_route.h"
#include "kernels/rope.h"

namespace ember {
namespace {

// A row-major matrix in fp32: an activation [tokens, width] or a widened weight [out, in].
struct Matrix {
  size_t rows = 0;
  size_t cols = 0;
  std::vector<float> values;
  Matrix(size_t r, size_t c) : rows(r), cols(c), values(r * c) {}
  float* row(size_t r) { return values.data() + r * cols; }
  const float* row(size_t r) const { return values.data() + r * cols; }
};

Matrix widen(const Weight& weight) {
  Matrix matrix(weight.rows, weight.cols);
  for (size_t r = 0; r < weight.rows; ++r) widen_row(weight, r, matrix.row(r));
  return matrix;
}

float dot(const float* a, const float* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += double{a[i]} * double{b[i]};
  return static_cast<float>(sum);
}

// y = x * w^T
Matrix linear(const Matrix& x, const Matrix& w) {
  EMBER_CHECK(x.cols == w.cols, "inner sizes differ");
  Matrix y(x.rows, w.rows);
  for (size_t t = 0; t < x.rows; ++t) {
    for (size_t o = 0; o < w.rows; ++o) y.row(t)[o] = dot(x.row(t), w.row(o), x.cols);
  }
  return y;
}

void norm_row(float* x, const Matrix& weight, size_t width, float eps) {
  const double mean = double{dot(x, x, width)} / static_cast<double>(width);
  const auto scale = static_cast<float>(1.0 / std::sqrt(mean + double{eps}));
  for (size_t i = 0; i < width; ++i) x[i] = x[i] * scale * weight.values[i];
}

Matrix norm(const Matrix& x, const Weight& weight, float eps) {
  Matrix y = x;
  const Matrix w = widen(weight);
  for (size_t t = 0; t < y.rows; ++t) norm_row(y.row(t), w, y.cols, eps);
  return y;
}

void add_to(Matrix& h, const Matrix& x) {
  for (size_t i = 0; i < h.values.size(); ++i) h.values[i] += x.values[i];
}

// W_down (silu(W_gate x) * W_up x)
Matrix swiglu(const Matrix& x, const Matrix& gate, const Matrix& up, const Matrix& down) {
  Matrix inner = linear(x, gate);
  const Matrix lift = linear(x, up);
  for (size_t i = 0; i < inner.values.size(); ++i) {
    const float z = inner.values[i];
    inner.values[i] = z / (1.0f + std::exp(-z)) * lift.values[i];
  }
  return linear(inner, down);
}

class Reference {
 public:
  Reference(const ModelWeights& weights, size_t tokens, AttentionForm form)
      : config_(weights.config),
        form_(form),
        rope_(tokens, config_.rope_dim),
        head_dim_(size_t{config_.nope_dim} + config_.rope_dim) {
    fill_rope_table(config_.inv_freq(), tokens, config_.rope_amplitude(), rope_.values.data());
  }

  // The rows that MLA caches: [c after its norm | RoPE key after rotation].
  Matrix latents(const LayerWeights& layer, const Matrix& x) const {
    Matrix rows = linear(x, widen(layer.kv_a));
    const Matrix weight = widen(layer.kv_a_norm);
    for (size_t t = 0; t < rows.rows; ++t) {
      norm_row(rows.row(t), weight, config_.kv_lora_rank, config_.inner_norm_eps);
      rope_row(rows.row(t) + config_.kv_lora_rank, rope_.row(t), config_.rope_dim);
    }
    return rows;
  }

  Matrix attention(const LayerWeights& layer, const Matrix& x, const Matrix& latent_rows) const {
    const Matrix q = queries(layer, x);
    const Matrix kv_b = widen(layer.kv_b);
    const bool absorb = form_ == AttentionForm::kAbsorb;
    const Matrix expanded = absorb ? Matrix(0, 0) : expand(kv_b, latent_rows);
    Matrix out(x.rows, size_t{config_.heads} * config_.value_dim);
    for (size_t h = 0; h < config_.heads; ++h) {
      for (size_t t = 0; t < x.rows; ++t) {
        const float* query = q.row(t) + h * head_dim_;
        float* head_out = out.row(t) + h * config_.value_dim;
        if (absorb) {
          absorbed_head(kv_b, h, t, query, latent_rows, head_out);
        } else {
          naive_head(expanded, h, t, query, latent_rows, head_out);
        }
      }
    }
    return linear(out, widen(layer.o));
  }

  Matrix feed_forward(const LayerWeights& layer, const Matrix& x) const {
    if (!layer.moe) return swiglu(x, widen(layer.gate), widen(layer.up), widen(layer.down));
    Matrix y = routed(layer, x);
    if (layer.has_shared) {
      add_to(y, swiglu(x, widen(layer.gate), widen(layer.up), widen(layer.down)));
    }
    return y;
  }

 private:
  Matrix queries(const LayerWeights& layer, const Matrix& x) const {
    Matrix q =
        config_.q_lora_rank == 0
            ? linear(x, widen(layer.q))
            : linear(norm(linear(x, widen(layer.q_a)), layer.q_a_norm, config_.inner_norm_eps),
                     widen(layer.q_b));
    for (size_t t = 0; t < q.rows; ++t) {
      for (size_t h = 0; h < config_.heads; ++h) {
        rope_row(q.row(t) + h * head_dim_ + config_.nope_dim, rope_.row(t), config_.rope_dim);
      }
    }
    return q;
  }

  // Row r of head h in kv_b: the first N make keys, the next V values.
  const float* kv_row(const Matrix& kv_b, size_t h, size_t r) const {
    return kv_b.row(h * (size_t{config_.nope_dim} + config_.value_dim) + r);
  }

  std::vector<float> softmax(std::vector<float> scores) const {
    const float most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (float& score : scores) {
      score = std::exp(score - most);
      sum += double{score};
    }
    for (float& score : scores) score = static_cast<float>(double{score} / sum);
    return scores;
  }

  // Scores against the latents themselves, with W_UK moved to the query and W_UV to the end.
  void absorbed_head(const Matrix& kv_b, size_t h, size_t t, const float* query,
                     const Matrix& latent_rows, float* out) const {
    const size_t rank = config_.kv_lora_rank;
    std::vector<float> q_latent(rank);
    for (size_t c = 0; c < rank; ++c) {
      double sum = 0;
      for (size_t n = 0; n < config_.nope_dim; ++n) {
        sum += double{kv_row(kv_b, h, n)[c]} * double{query[n]};
      }
      q_latent[c] = static_cast<float>(sum);
    }
    std::vector<float> scores(t + 1);
    for (size_t s = 0; s <= t; ++s) {
      scores[s] = config_.softmax_scale() *
                  (dot(q_latent.data(), latent_rows.row(s), rank) +
                   dot(query + config_.nope_dim, latent_rows.row(s) + rank, config_.rope_dim));
    }
    const std::vector<float> p = softmax(std::move(scores));
    std::vector<float> mixed(rank);
    for (size_t c = 0; c < rank; ++c) {
      double sum = 0;
      for (size_t s = 0; s <= t; ++s) sum += double{p[s]} * double{latent_rows.row(s)[c]};
      mixed[c] = static_cast<float>(sum);
    }
    for (size_t v = 0; v < config_.value_dim; ++v) {
      out[v] = dot(kv_row(kv_b, h, config_.nope_dim + v), mixed.data(), rank);
    }
  }

  // Keys and values of all heads, [tokens, H (N + V)].
  Matrix expand(const Matrix& kv_b, const Matrix& latent_rows) const {
    Matrix c(latent_rows.rows, config_.kv_lora_rank);
    for (size_t t = 0; t < c.rows; ++t) {
      std::copy(latent_rows.row(t), latent_rows.row(t) + c.cols, c.row(t));
    }
    return linear(c, kv_b);
  }

  // Ordinary attention of one query over the expanded keys and values.
  void naive_head(const Matrix& expanded, size_t h, size_t t, const float* query,
                  const Matrix& latent_rows, float* out) const {
    const size_t nope = config_.nope_dim;
    const size_t key_at = h * (nope + config_.value_dim);
    std::vector<float> scores(t + 1);
    for (size_t s = 0; s <= t; ++s) {
      const float* rope_key = latent_rows.row(s) + config_.kv_lora_rank;
      scores[s] = config_.softmax_scale() * (dot(query, expanded.row(s) + key_at, nope) +
                                             dot(query + nope, rope_key, config_.rope_dim));
    }
    const std::vector<float> p = softmax(std::move(scores));
    for (size_t v = 0; v < config_.value_dim; ++v) {
      double sum = 0;
      for (size_t s = 0; s <= t; ++s) {
        sum += double{p[s]} * double{expanded.row(s)[key_at + nope + v]};
      }
      out[v] = static_cast<float>(sum);
    }
  }

  Matrix routed(const LayerWeights& layer, const Matrix& x) const {
    const Matrix logits = linear(x, widen(layer.router));
    ExpertRouteParams route;
    route.score = route_score(config_);
    route.width = x.cols;
    route.experts = config_.routed_experts;
    route.top_k = config_.experts_per_token;
    route.groups = config_.expert_groups;
    route.top_groups = config_.top_groups;
    route.normalize = config_.normalize_routes;
    route.scale = config_.routed_scale;
    route.bias = layer.router_bias.empty() ? nullptr : layer.router_bias.data();
    Matrix y(x.rows, x.cols);
    std::vector<int32_t> ids(route.top_k);
    std::vector<float> shares(route.top_k);
    for (size_t t = 0; t < x.rows; ++t) {
      choose_experts(route, logits.row(t), ids.data(), shares.data());
      Matrix token(1, x.cols);
      std::copy(x.row(t), x.row(t) + x.cols, token.row(0));
      for (size_t k = 0; k < route.top_k; ++k) {
        const Matrix part = expert(layer, static_cast<size_t>(ids[k]), token);
        for (size_t i = 0; i < x.cols; ++i) y.row(t)[i] += shares[k] * part.values[i];
      }
    }
    return y;
  }

  Matrix expert(const LayerWeights& layer, size_t e, const Matrix& token) const {
    const ExpertWeights& w = layer.experts[e];
    const size_t inner = config_.moe_inner;
    const DType dtype = layer.expert_dtype;
    return swiglu(token, widen({w.gate, dtype, inner, token.cols, w.gate_scales}),
                  widen({w.up, dtype, inner, token.cols, w.up_scales}),
                  widen({w.down, dtype, token.cols, inner, w.down_scales}));
  }

  const ModelConfig& config_;
  AttentionForm form_;
  Matrix rope_;  // [tokens, R]: cos and sin of each pair
  size_t head_dim_;
};

}  // namespace

ReferenceOutput reference_forward(const ModelWeights& weights, std::span<const int32_t> tokens,
                                  AttentionForm form) {
  const ModelConfig& config = weights.config;
  const Reference reference(weights, tokens.size(), form);
  const Matrix embedding = widen(weights.embedding);
  Matrix h(tokens.size(), config.hidden);
  for (size_t t = 0; t < tokens.size(); ++t) {
    EMBER_CHECK(tokens[t] >= 0 && static_cast<size_t>(tokens[t]) < embedding.rows,
                "a token outside the vocabulary");
    const float* row = embedding.row(static_cast<size_t>(tokens[t]));
    std::copy(row, row + embedding.cols, h.row(t));
  }
  ReferenceOutput output;
  for (const LayerWeights& layer : weights.layers) {
    const Matrix x = norm(h, layer.attention_norm, config.norm_eps);
    Matrix latents = reference.latents(layer, x);
    add_to(h, reference.attention(layer, x, latents));
    add_to(h, reference.feed_forward(layer, norm(h, layer.ffn_norm, config.norm_eps)));
    output.latents.push_back(std::move(latents.values));
  }
  output.logits = linear(norm(h, weights.final_norm, config.norm_eps), widen(weights.head)).values;
  return output;
}

}  // namespace ember
