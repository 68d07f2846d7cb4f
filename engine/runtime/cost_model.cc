// Cost model: terms of the two durations, and priors.
#include "engine/runtime/cost_model.h"

#include <algorithm>

namespace ember {
namespace {

constexpr double kGuessedFlopPerUs = 20'000;  // of a core
constexpr double kHostStartUs = 50;
constexpr double kHostBytesPerUs = 4000;
constexpr double kDiskStartUs = 1000;
constexpr double kDiskBytesPerUs = 500;
constexpr uint64_t kKnown = 8;  // observations
constexpr double kLeastLeft = 0.1;  // of a duration, for the tier that is taught
constexpr double kLeastOfGuess = 1e-6;
constexpr double kRemoteStartUs = 3000;
constexpr double kRemoteBytesPerUs = 100;

LearnedCost restore_prior(double start_us, double bytes_per_us) {
  return LearnedCost({start_us, 1 / bytes_per_us, 0});
}

// A term that came out as nothing keeps a small share of its guess: else it could never be learned
// again.
LearnedCost begun_with(LearnedCost::Terms terms, const LearnedCost& guess) {
  for (size_t i = 0; i < terms.size(); ++i) {
    terms[i] = std::max(terms[i], kLeastOfGuess * guess.learned()[i]);
  }
  return LearnedCost::begun_with(terms);
}

}  // namespace

CostPrior guessed_prior(uint64_t active_parameters, uint64_t token_bytes, size_t chunk_tokens,
                        int workers) {
  CostPrior prior;
  const double flop = 2 * static_cast<double>(active_parameters);
  prior.token_us = flop / (kGuessedFlopPerUs * std::max(workers, 1));
  prior.step_us = 4 * prior.token_us;  // weights are read whatever the number of tokens
  prior.token_position_us = prior.token_us / 16384;
  prior.chunk_tokens = std::max<size_t>(chunk_tokens, 1);
  prior.token_bytes = static_cast<double>(token_bytes);
  return prior;
}

CostPrior noted_prior(const CostNote& note) {
  CostPrior prior;
  prior.chunk_tokens = note.chunk_tokens;
  prior.token_bytes = note.token_bytes;
  prior.learned = note;
  prior.step_us = prior.token_us = prior.token_position_us = 0;
  return prior;
}

CostModel::CostModel(const CostPrior& prior)
    : prior_(prior),
      compute_({prior.step_us, prior.token_us, prior.token_position_us}),
      restore_{LearnedCost({0, 0, 0}), restore_prior(kHostStartUs, kHostBytesPerUs),
               restore_prior(kDiskStartUs, kDiskBytesPerUs),
               restore_prior(kRemoteStartUs, kRemoteBytesPerUs)} {
  if (!prior.learned) return;
  computes_ = prior.learned->observations;
  compute_ = begun_with(prior.learned->compute, compute_);
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    const auto& [start_us, byte_us] = prior.learned->restore[tier];
    restore_[tier] = begun_with({start_us, byte_us, 0}, restore_[tier]);
  }
}

CostNote CostModel::note() const {
  CostNote note;
  note.chunk_tokens = prior_.chunk_tokens;
  note.token_bytes = prior_.token_bytes;
  note.observations = computes_;
  note.compute = compute_.learned();
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    const LearnedCost::Terms& terms = restore_[tier].learned();
    note.restore[tier] = {terms[0], terms[1]};
  }
  return note;
}

LearnedCost::Terms CostModel::compute_terms(size_t tokens, size_t position) const {
  const size_t steps = (tokens + prior_.chunk_tokens - 1) / prior_.chunk_tokens;
  const double n = static_cast<double>(tokens);
  return {static_cast<double>(steps), n, n * (static_cast<double>(position) + n / 2)};
}

LearnedCost::Terms CostModel::restore_terms(uint64_t tokens) const {
  if (tokens == 0) return {};
  return {1, static_cast<double>(tokens) * prior_.token_bytes, 0};
}

void CostModel::saw_compute(size_t tokens, size_t position, int64_t us) {
  if (tokens == 0) return;
  ++computes_;
  compute_.saw(compute_terms(tokens, position), static_cast<double>(us));
}

// Where several tiers took part, the one that is known least is taught what the others leave of the
// time; of those that are known, the one that is thought to take longest.
void CostModel::saw_restore(const TokensByTier& tokens, int64_t us) {
  size_t taught = kTierCount;
  std::array<double, kTierCount> expected{};
  double others_us = 0;
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    expected[tier] = restore_[tier].of(restore_terms(tokens[tier]));
    others_us += expected[tier];
    if (expected[tier] <= 0) continue;
    const auto known = [&](size_t of) { return std::min(restore_[of].observations(), kKnown); };
    const bool better = taught == kTierCount || known(tier) < known(taught) ||
                        (known(tier) == known(taught) && expected[tier] > expected[taught]);
    if (better) taught = tier;
  }
  if (taught == kTierCount) return;
  others_us -= expected[taught];
  const double left = std::max(static_cast<double>(us) - others_us,
                               kLeastLeft * static_cast<double>(us));
  restore_[taught].saw(restore_terms(tokens[taught]), left);
}

void CostModel::saw_cut_restore(const TokensByTier& tokens, int64_t us) {
  if (2 * static_cast<double>(us) > restore_us(tokens)) saw_restore(tokens, 2 * us);
}

double CostModel::compute_us(size_t tokens, size_t position) const {
  return compute_.of(compute_terms(tokens, position));
}

double CostModel::restore_us(const TokensByTier& tokens) const {
  double us = 0;
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    us += restore_[tier].of(restore_terms(tokens[tier]));
  }
  return us;
}

}  // namespace ember
