// Sample on the CPU: argmax, or the exponential race with counter-based draws.
#include "kernels/sample.h"

#include <cmath>
#include <limits>

#include "base/prng.h"
#include "kernels/row_math.h"

namespace ember {
namespace {

// The lowest id of the largest logit; a NaN counts as minus infinity.
int32_t greedy(const float* logits, size_t n) {
  size_t best = 0;
  float largest = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < n; ++i) {
    if (logits[i] > largest) {
      largest = logits[i];
      best = i;
    }
  }
  return static_cast<int32_t>(best);
}

// Uniform in (0, 1), exact in a double.
double uniform_draw(uint64_t seed, int32_t position, size_t token) {
  const uint64_t bits = counter_random(seed, static_cast<uint64_t>(position), token);
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1.0p-52;
}

// argmax of p_j / e_j with e_j = -log(u_j). The softmax's sum divides all alike and is left out.
// Since e >= 1 - u, most tokens lose without a logarithm.
int32_t race(float* p, size_t n, uint64_t seed, int32_t position) {
  size_t best = 0;
  double best_ratio = -1;
  for (size_t i = 0; i < n; ++i) {
    const auto weight = static_cast<double>(p[i]);
    if (!(weight > 0)) continue;
    const double u = uniform_draw(seed, position, i);
    if (weight < best_ratio * (1 - u) * (1 - 1e-9)) continue;
    const double ratio = weight / -std::log(u);
    if (ratio > best_ratio) {
      best_ratio = ratio;
      best = i;
    }
  }
  return static_cast<int32_t>(best);
}

int32_t draw(const float* logits, size_t n, float temperature, uint64_t seed, int32_t position,
             float* p) {
  const int32_t top = greedy(logits, n);
  const float largest = logits[top];
  if (!std::isfinite(largest)) return top;  // nothing to weigh: all NaN or minus infinity, or plus
  const float infinity = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < n; ++i) {
    p[i] = std::isnan(logits[i]) ? -infinity : (logits[i] - largest) / temperature;
  }
  simd().exp_sum(p, n, 0.0f);
  return race(p, n, seed, position);
}

}  // namespace

void sample_cpu(const SampleParams& params, CpuTeam& team) {
  EMBER_CHECK(params.valid_vocab > 0 && params.valid_vocab <= params.vocab,
              "valid ids lie within the logits");
  const auto [first, last] = team.share(params.rows);
  if (first == last) return;
  ScratchParts parts(team, ScratchParts::room_for<float>(params.valid_vocab));
  float* p = parts.take<float>(params.valid_vocab);
  for (size_t i = first; i < last; ++i) {
    const float* logits = params.logits + i * params.vocab;
    params.ids[i] = params.temperatures[i] > 0
                        ? draw(logits, params.valid_vocab, params.temperatures[i],
                               params.seeds[i], params.positions[i], p)
                        : greedy(logits, params.valid_vocab);
  }
}

}  // namespace ember
