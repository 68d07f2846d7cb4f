// Learned cost: a duration as a sum of up to three terms (a start, a share for each unit, ...),
// whose coefficients are learned from what durations turned out to be.
//
// Journey    none; cost_model is made of these
// Invariant  coefficients are never negative; without an observation they are the prior's
// Threads    engine thread only
//
// Least squares of the relative error, so that short durations count as much as long ones. Old
// observations fade. One that is off by more than twice is half believed, since machines stall now
// and then; the second in a row in the same direction means that the world has changed: all is
// forgotten but how the terms were to each other, which is where learning begins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ember {

class LearnedCost {
 public:
  static constexpr size_t kTerms = 3;
  using Terms = std::array<double, kTerms>;  // unused terms are 0 everywhere

  // `prior`: microseconds for each unit of a term, as good as one knows.
  explicit LearnedCost(const Terms& prior)
      : prior_(prior), learned_(prior), prior_fade_(kPriorFade) {}

  // Begins with what was learned before, which a first observation does not overthrow.
  static LearnedCost begun_with(const Terms& learned);

  // Microseconds.
  double of(const Terms& terms) const;
  void saw(const Terms& terms, double us);
  const Terms& learned() const { return learned_; }
  uint64_t observations() const { return observations_; }

 private:
  static constexpr double kPriorFade = 0.1;  // a guess may be far off

  void begin_anew(double ratio);
  void fade(double share);
  void learn();

  Terms prior_;
  Terms learned_;
  std::array<Terms, kTerms> products_{};  // sums over observations, each weighted
  Terms results_{};
  uint64_t observations_ = 0;
  double prior_weight_ = 0;  // in observations
  double prior_fade_;        // of it, at each observation
  int surprise_ = 0;         // of the last observation: -1 faster, +1 slower than twice
};

}  // namespace ember
