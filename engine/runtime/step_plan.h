// Step plan: how many tokens of which running sequence are in the next step. Pure.
//
// Journey    running sequences -> [step_plan] -> scheduler -> forward
// Invariant  every decoding sequence is in every step; prompts share chunk_tokens rows, and none
//            that has uncomputed tokens waits for ever: a tenant's rows never depend on how much
//            others ask for beyond their share, and a tenant's oldest prompt gets half of them
// Not here   who runs at all (engine/runtime/admission_plan.h)
//
// Within a tenant the rows that its oldest prompt is not sure of go to whoever needs fewest to get
// done. So a short prompt ends soon beside a long one, and among equals the first comes first.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace ember {

struct StepCandidate {
  std::string_view tenant;
  size_t uncomputed = 0;  // 0: not in this step
  bool decode = false;    // its one token; else a prompt's
};

// Tokens of each candidate; these come oldest first.
void plan_step(std::span<const StepCandidate> candidates, size_t chunk_tokens,
               std::vector<size_t>& tokens);

}  // namespace ember
