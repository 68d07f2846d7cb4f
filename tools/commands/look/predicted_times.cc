// Asks the cost model, begun with what was noted, for the plan of a prompt.
#include "tools/commands/look/predicted_times.h"

#include "engine/runtime/cost_model.h"
#include "engine/runtime/restore_plan.h"

namespace ember {

std::optional<PredictedTimes> predict_times(const std::string& store, const PromptMatch& match,
                                            uint64_t prompt_tokens) {
  const std::optional<CostNote> note = read_cost_note(store, match.name_space);
  if (!note || note->observations == 0 || prompt_tokens == 0) return std::nullopt;
  const CostModel costs(noted_prior(*note));
  BlockCache::Match known;
  known.tokens = match.tokens;
  for (const TierRun& run : match.runs) {
    known.runs.push_back({run.tier, run.tokens});
    known.tokens_by_tier[static_cast<size_t>(run.tier)] += run.tokens;
  }
  const RestorePlan plan = plan_restore(prompt_tokens, known, costs, RestorePolicy::kByCost);
  PredictedTimes times;
  times.restored_tokens = plan.restore_tokens;
  times.skipped_tokens = plan.skipped_tokens;
  times.restore_ms = plan.restore_us * 1e-3;
  times.compute_ms = plan.compute_us * 1e-3;
  times.without_cache_ms = costs.compute_us(prompt_tokens, 0) * 1e-3;
  times.context_tokens = note->context_tokens;
  times.observations = note->observations;
  times.unix_us = note->unix_us;
  return times;
}

}  // namespace ember
