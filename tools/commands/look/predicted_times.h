// Predicted times: what a prompt would take with what is known of it, and without, as the processes
// that served its namespace learned.
//
// Journey    prompt_match, cost_note -> [predicted_times] -> explain, warm
// Invariant  the plan is the one that the engine would make (engine/runtime/restore_plan.h)
// Threads    any
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/cost_note.h"
#include "tools/commands/look/prompt_match.h"

namespace ember {

struct PredictedTimes {
  uint64_t restored_tokens = 0;
  uint64_t skipped_tokens = 0;  // known, but quicker computed than restored
  double restore_ms = 0;
  double compute_ms = 0;        // of what is not restored
  double without_cache_ms = 0;  // computing all of it
  uint64_t context_tokens = 0;  // that the process had which learned it; 0: not known
  uint64_t observations = 0;    // steps that this was learned from
  int64_t unix_us = 0;          // when it was learned
};

// Nothing where nobody has computed in this namespace yet.
std::optional<PredictedTimes> predict_times(const std::string& store, const PromptMatch& match,
                                            uint64_t prompt_tokens);

}  // namespace ember
