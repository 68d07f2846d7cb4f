// Restore plan: the comparison, and the budget of probes.
#include "engine/runtime/restore_plan.h"

#include <algorithm>

namespace ember {
namespace {

constexpr double kGraceUs = 250'000;   // a busy machine stalls for so long now and then
constexpr double kProbePatience = 1.5;  // of what is predicted
constexpr double kProbeShare = 0.01;  // of the predicted time of all requests

RestorePlan plan_with(size_t prompt_tokens, size_t restore_tokens,
                      const CostModel::TokensByTier& from, const CostModel& costs) {
  RestorePlan plan;
  plan.restore_tokens = restore_tokens;
  plan.compute_tokens = prompt_tokens - restore_tokens;
  plan.from = from;
  plan.restore_us = costs.restore_us(from);
  plan.compute_us = costs.compute_us(plan.compute_tokens, restore_tokens);
  const size_t on_device = from[static_cast<size_t>(Tier::kDevice)];
  plan.patience_us =
      kGraceUs + costs.compute_us(prompt_tokens - on_device, on_device) - plan.compute_us;
  return plan;
}

double total_us(const RestorePlan& plan) { return plan.restore_us + plan.compute_us; }

}  // namespace

RestorePlan plan_restore(size_t prompt_tokens, const BlockCache::Match& match,
                         const CostModel& costs, RestorePolicy policy) {
  const size_t known = std::min(match.tokens, prompt_tokens - 1);
  CostModel::TokensByTier from{};
  RestorePlan best = plan_with(prompt_tokens, 0, from, costs);
  RestorePlan all = best;
  size_t taken = 0;
  bool all_on_device = true;
  for (const BlockCache::TierRun& run : match.runs) {
    const size_t tokens = std::min<size_t>(run.tokens, known - taken);
    if (tokens == 0) break;
    taken += tokens;
    from[static_cast<size_t>(run.tier)] += tokens;
    all = plan_with(prompt_tokens, taken, from, costs);
    all_on_device = all_on_device && run.tier == Tier::kDevice;
    if (all_on_device || total_us(all) <= total_us(best)) best = all;
  }
  if (policy == RestorePolicy::kAlways) return all;
  best.skipped_tokens = taken - best.restore_tokens;
  return best;
}

RestorePlan RestoreProbe::plan(size_t prompt_tokens, const BlockCache::Match& match,
                               const CostModel& costs) {
  RestorePlan plan = plan_restore(prompt_tokens, match, costs, RestorePolicy::kByCost);
  budget_us_ += kProbeShare * total_us(plan);
  if (plan.skipped_tokens == 0) return plan;
  RestorePlan all = plan_restore(prompt_tokens, match, costs, RestorePolicy::kAlways);
  const double extra_us = total_us(all) - total_us(plan);
  if (extra_us > budget_us_) return plan;
  budget_us_ -= extra_us;
  all.patience_us = std::max(all.patience_us, kProbePatience * all.restore_us);
  return all;
}

}  // namespace ember
