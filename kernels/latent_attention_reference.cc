// Latent attention, the obviously right form: one query, one head at a time, in double.
#include <limits>
#include <vector>

#include "kernels/latent_attention.h"
#include "kernels/latent_row.h"
#include "kernels/row_math.h"

namespace ember {
namespace {

double latent_value(const LatentAttentionParams& p, const std::byte* row, size_t index) {
  return latent_row_value(row, p.cache.dtype, p.latent_dim, index);
}

double expanded(const LatentAttentionParams& p, size_t head, size_t weight_row,
                const std::byte* row) {
  const size_t base = (head * (p.nope_dim + p.value_dim) + weight_row) * p.latent_dim;
  double sum = 0;
  for (size_t i = 0; i < p.latent_dim; ++i) {
    sum += value_at(p.w_kv_b, p.w_dtype, base + i) * latent_value(p, row, i);
  }
  return sum;
}

double score(const LatentAttentionParams& p, size_t pair, const std::byte* row) {
  const size_t q_base = pair * (p.nope_dim + p.rope_dim);
  double sum = 0;
  if (p.form == AttentionForm::kAbsorb) {
    for (size_t i = 0; i < p.latent_dim; ++i) {
      sum += value_at(p.q_latent, p.q_dtype, pair * p.latent_dim + i) *
             latent_value(p, row, i);
    }
  } else {
    for (size_t i = 0; i < p.nope_dim; ++i) {
      sum += value_at(p.q, p.q_dtype, q_base + i) * expanded(p, pair % p.heads, i, row);
    }
  }
  for (size_t i = 0; i < p.rope_dim; ++i) {
    sum += value_at(p.q, p.q_dtype, q_base + p.nope_dim + i) *
           latent_value(p, row, p.latent_dim + i);
  }
  return sum * static_cast<double>(p.scale);
}

void attend(const LatentAttentionParams& p, size_t t, size_t head) {
  const size_t pair = t * p.heads + head;
  const bool absorb = p.form == AttentionForm::kAbsorb;
  const size_t width = absorb ? p.latent_dim : p.value_dim;
  std::vector<double> weights;
  double largest = -std::numeric_limits<double>::infinity();
  for (int32_t j = 0; j <= p.positions[t]; ++j) {
    weights.push_back(score(p, pair, p.cache.row(p.sequences[t], j)));
    largest = std::max(largest, weights.back());
  }
  double total = 0;
  for (double& weight : weights) {
    weight = std::exp(weight - largest);
    total += weight;
  }
  for (size_t v = 0; v < width; ++v) {
    double sum = 0;
    for (int32_t j = 0; j <= p.positions[t]; ++j) {
      const std::byte* row = p.cache.row(p.sequences[t], j);
      sum += weights[static_cast<size_t>(j)] *
             (absorb ? latent_value(p, row, v) : expanded(p, head, p.nope_dim + v, row));
    }
    const auto rounded = static_cast<float>(sum / total);
    store_row(&rounded, p.out_dtype, 1, element(p.out, p.out_dtype, pair * width + v));
  }
}

}  // namespace

void latent_attention_reference(const LatentAttentionParams& params) {
  for (size_t t = 0; t < params.rows; ++t) {
    for (size_t head = 0; head < params.heads; ++head) attend(params, t, head);
  }
}

}  // namespace ember
