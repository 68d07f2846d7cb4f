// Cost model: what it takes to restore tokens from a tier and to compute them, learned at work.
//
// Journey    scheduler (what happened) -> [cost_model] -> restore_plan (what it would take)
// Invariant  pure of clocks: it is told durations; estimates are finite and not negative
// Threads    engine thread only
// Not here   what follows from it (restore_plan.h)
//
// T_restore(n) = start + bytes(n) / rate, for each tier; T_compute(n, p) = steps * start + n at a
// rate that falls with the position p, since attention reads all rows before it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/runtime/learned_cost.h"
#include "store/block_cache.h"
#include "store/cost_note.h"

namespace ember {

// What one believes before anything was measured.
struct CostPrior {
  double step_us = 1000;                // a forward step of no tokens
  double token_us = 1000;               // each token of it
  double token_position_us = 0.05;      // each token and position before it
  size_t chunk_tokens = 256;            // prompt tokens a step
  double token_bytes = 1;               // of latents
  // What an earlier process learned; it stands in place of the guesses.
  std::optional<CostNote> learned = {};
};
// As an earlier process left it: to predict with, where there is no model.
CostPrior noted_prior(const CostNote& note);
// For a model of so many parameters that act on a token, on `workers` cores: a cautious guess.
CostPrior guessed_prior(uint64_t active_parameters, uint64_t token_bytes, size_t chunk_tokens,
                        int workers);

class CostModel {
 public:
  using TokensByTier = std::array<uint64_t, kTierCount>;

  explicit CostModel(const CostPrior& prior);

  // A step in which one prompt's `tokens` from `position` on were computed, and little else.
  void saw_compute(size_t tokens, size_t position, int64_t us);
  // A restore that took `us` from its begin to its last row.
  void saw_restore(const TokensByTier& tokens, int64_t us);

  // One that was given up after `us`: it would have taken longer.
  void saw_cut_restore(const TokensByTier& tokens, int64_t us);

  // Microseconds to compute `tokens` from `position` on, in chunks.
  double compute_us(size_t tokens, size_t position) const;
  // To restore tokens; what lies on the device takes nothing.
  double restore_us(const TokensByTier& tokens) const;

  // All that was learned; `unix_us` is the caller's to set.
  CostNote note() const;

 private:
  LearnedCost::Terms compute_terms(size_t tokens, size_t position) const;
  LearnedCost::Terms restore_terms(uint64_t tokens) const;

  CostPrior prior_;
  LearnedCost compute_;
  std::array<LearnedCost, kTierCount> restore_;
  uint64_t computes_ = 0;  // seen, by earlier processes too
};

}  // namespace ember
