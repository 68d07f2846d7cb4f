// Learned cost: fading sums, and their least-squares solution without negative coefficients.
#include "engine/runtime/learned_cost.h"

#include <algorithm>
#include <cmath>

namespace ember {
namespace {

constexpr double kFade = 0.95;         // of all that was seen, at each observation
constexpr double kPriorWeight = 0.02;  // in observations
constexpr double kLearnedWeight = 3;   // of what was learned before, in observations
constexpr double kLearnedFade = 0.9;
constexpr double kLeastShare = 1e-3;   // of its prior: a term that seemed to be nothing
constexpr double kLeastPrior = 1e-8;   // it keeps the equations solvable
constexpr uint64_t kTrustedFrom = 3;   // observations before one can surprise
constexpr double kSurprise = 2;        // times more or less than expected

using Terms = LearnedCost::Terms;
using Matrix = std::array<Terms, LearnedCost::kTerms>;

// Gaussian elimination with pivots over the terms in use; false where there is no solution.
bool solve(Matrix a, Terms b, const std::array<bool, LearnedCost::kTerms>& used, Terms& x) {
  x = {};
  std::array<size_t, LearnedCost::kTerms> order{};
  size_t n = 0;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) order[n++] = i;
  }
  for (size_t step = 0; step < n; ++step) {
    size_t best = step;
    for (size_t row = step; row < n; ++row) {
      if (std::abs(a[order[row]][order[step]]) > std::abs(a[order[best]][order[step]])) best = row;
    }
    const size_t pivot = order[best];
    if (a[pivot][order[step]] == 0) return false;
    std::swap(a[pivot], a[order[step]]);
    std::swap(b[pivot], b[order[step]]);
    for (size_t row = step + 1; row < n; ++row) {
      const double factor = a[order[row]][order[step]] / a[order[step]][order[step]];
      for (size_t col = step; col < n; ++col) {
        a[order[row]][order[col]] -= factor * a[order[step]][order[col]];
      }
      b[order[row]] -= factor * b[order[step]];
    }
  }
  for (size_t step = n; step-- > 0;) {
    double sum = b[order[step]];
    for (size_t col = step + 1; col < n; ++col) sum -= a[order[step]][order[col]] * x[order[col]];
    x[order[step]] = sum / a[order[step]][order[step]];
  }
  return true;
}

}  // namespace

LearnedCost LearnedCost::begun_with(const Terms& learned) {
  LearnedCost cost(learned);
  cost.observations_ = kTrustedFrom;
  cost.prior_weight_ = kLearnedWeight;
  cost.prior_fade_ = kLearnedFade;
  return cost;
}

double LearnedCost::of(const Terms& terms) const {
  double us = 0;
  for (size_t i = 0; i < kTerms; ++i) us += learned_[i] * terms[i];
  return us;
}

void LearnedCost::saw(const Terms& terms, double us) {
  const double expected = of(terms);
  if (us <= 0 || expected <= 0) return;
  const double ratio = us / expected;
  const int surprise = ratio > kSurprise ? 1 : ratio < 1 / kSurprise ? -1 : 0;
  if (observations_ == 0 || (surprise != 0 && surprise == surprise_)) {
    begin_anew(ratio);
  } else if (surprise != 0 && observations_ >= kTrustedFrom) {
    us = surprise > 0 ? expected * kSurprise : expected / kSurprise;
  }
  surprise_ = surprise;
  ++observations_;
  prior_weight_ = std::max(kLeastPrior, prior_weight_ * prior_fade_);
  fade(kFade);
  const double weight = 1 / (us * us);
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t j = 0; j < kTerms; ++j) products_[i][j] += weight * terms[i] * terms[j];
    results_[i] += weight * terms[i] * us;
  }
  learn();
}

// The machine is so many times slower than thought, in all respects as far as one knows.
void LearnedCost::begin_anew(double ratio) {
  for (size_t i = 0; i < kTerms; ++i) {
    prior_[i] = ratio * std::max(learned_[i], kLeastShare * prior_[i]);
  }
  products_ = {};
  results_ = {};
  prior_weight_ = kPriorWeight;
  prior_fade_ = kPriorFade;
  observations_ = 0;
}

void LearnedCost::fade(double share) {
  for (Terms& row : products_) {
    for (double& value : row) value *= share;
  }
  for (double& value : results_) value *= share;
}

// The prior is an observation of each term alone. A term that comes out negative
// is taken for 0, and the others are solved again.
void LearnedCost::learn() {
  Matrix a = products_;
  Terms b = results_;
  std::array<bool, kTerms> used{};
  for (size_t i = 0; i < kTerms; ++i) {
    used[i] = prior_[i] > 0;
    if (!used[i]) continue;
    a[i][i] += prior_weight_ / (prior_[i] * prior_[i]);
    b[i] += prior_weight_ / prior_[i];
  }
  for (size_t round = 0; round < kTerms; ++round) {
    Terms solution{};
    if (!solve(a, b, used, solution)) return;
    const auto least = std::min_element(solution.begin(), solution.end());
    if (*least >= 0) {
      learned_ = solution;
      return;
    }
    used[static_cast<size_t>(least - solution.begin())] = false;
  }
}

}  // namespace ember
