// Expert route on the CPU: router logits in fp32, then the choice, whole rows to each worker.
#include "kernels/expert_route.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "kernels/row_math.h"

namespace ember {
namespace {

constexpr size_t kMaxExperts = 1024;
constexpr float kExcluded = -std::numeric_limits<float>::infinity();

// Index of the largest value that is not yet taken; the lowest on ties.
size_t take_largest(std::span<const float> values, std::span<bool> taken) {
  size_t best = values.size();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!taken[i] && (best == values.size() || values[i] > values[best])) best = i;
  }
  EMBER_CHECK(best < values.size(), "more choices than candidates");
  taken[best] = true;
  return best;
}

float largest(std::span<const float> values) {
  return *std::max_element(values.begin(), values.end());
}

float two_largest(std::span<const float> values) {
  float first = kExcluded;
  float second = kExcluded;
  for (const float value : values) {
    if (value > first) {
      second = first;
      first = value;
    } else if (value > second) {
      second = value;
    }
  }
  return values.size() == 1 ? first : first + second;
}

// Groups beyond the best `top_groups` lose their experts.
void exclude_groups(const ExpertRouteParams& p, std::span<float> choice) {
  const size_t size = p.experts / p.groups;
  std::array<float, kMaxExperts> scores;
  std::array<bool, kMaxExperts> kept{};
  const auto score = p.score == RouteScore::kSigmoid ? two_largest : largest;
  for (size_t g = 0; g < p.groups; ++g) scores[g] = score(choice.subspan(g * size, size));
  for (size_t i = 0; i < p.top_groups; ++i) {
    take_largest(std::span(scores).first(p.groups), std::span(kept).first(p.groups));
  }
  for (size_t e = 0; e < p.experts; ++e) {
    if (!kept[e / size]) choice[e] = kExcluded;
  }
}

// Router logits become scores in place.
void score_experts(const ExpertRouteParams& p, std::span<float> logits) {
  if (p.score == RouteScore::kSigmoid) {
    simd().sigmoid(logits.data(), logits.size());
    return;
  }
  float most = kExcluded;
  for (const float logit : logits) most = logit > most ? logit : most;
  const float sum = simd().exp_sum(logits.data(), logits.size(), most);
  for (float& score : logits) score /= sum;
}

}  // namespace

void choose_experts(const ExpertRouteParams& p, const float* logits, int32_t* ids,
                    float* weights) {
  EMBER_CHECK(p.experts <= kMaxExperts && p.top_k <= p.experts, "too many experts");
  EMBER_CHECK(p.groups > 0 && p.experts % p.groups == 0 && p.top_groups <= p.groups,
              "groups divide the experts");
  std::array<float, kMaxExperts> scores;
  std::array<float, kMaxExperts> choice;
  std::copy_n(logits, p.experts, scores.begin());
  score_experts(p, std::span(scores).first(p.experts));
  for (size_t e = 0; e < p.experts; ++e) {
    choice[e] = p.bias == nullptr ? scores[e] : scores[e] + p.bias[e];
    if (std::isnan(choice[e])) choice[e] = kExcluded;
  }
  if (p.groups > 1) exclude_groups(p, std::span(choice).first(p.experts));
  std::array<bool, kMaxExperts> taken{};
  for (size_t i = 0; i < p.top_k; ++i) {
    take_largest(std::span(choice).first(p.experts), std::span(taken).first(p.experts));
  }
  size_t count = 0;
  float sum = 0;
  for (size_t e = 0; e < p.experts; ++e) {
    if (!taken[e]) continue;
    ids[count] = static_cast<int32_t>(e);
    weights[count] = scores[e];
    sum += scores[e];
    ++count;
  }
  const bool normalize = p.normalize && (p.score == RouteScore::kSigmoid || p.top_k > 1);
  const bool scale = p.score == RouteScore::kSigmoid || !normalize;
  for (size_t i = 0; i < p.top_k; ++i) {
    if (normalize) weights[i] /= sum + 1e-20f;
    if (scale) weights[i] *= p.scale;
  }
}

void expert_route_cpu(const ExpertRouteParams& params, CpuTeam& team) {
  const auto [first, last] = team.share(params.rows);
  if (first == last) return;
  const size_t rows = std::min(kDotRows, last - first);
  const size_t stride = padded_stride(params.width);
  ScratchParts parts(team, sizeof(DotScratch) +
                               ScratchParts::room_for<float>(rows * stride) +
                               ScratchParts::room_for<float>(rows * params.experts));
  auto* scratch = parts.take<DotScratch>(1);
  float* x = parts.take<float>(rows * stride);
  float* logits = parts.take<float>(rows * params.experts);
  for (size_t row = first; row < last; row += rows) {
    const size_t n = std::min(rows, last - row);
    for (size_t i = 0; i < n; ++i) {
      load_row(element(params.x, params.x_dtype, (row + i) * params.width), params.x_dtype,
               params.width, x + i * stride);
    }
    simd().dot(DotBlock{x, stride, n, params.w, params.w_dtype, params.width, params.experts,
                        params.width, logits, params.experts},
               *scratch);
    for (size_t i = 0; i < n; ++i) {
      choose_experts(params, logits + i * params.experts, params.ids + (row + i) * params.top_k,
                     params.weights + (row + i) * params.top_k);
    }
  }
}

}  // namespace ember
