// Restore plan: how much of a known prefix is brought up, and where computing begins. Pure.
//
// Journey    radix_index -> [restore_plan] -> block_cache (restore), forward (prefill)
// Invariant  at least the prompt's last token is computed: it gives the first logits; what lies on
//            the device is always used
// Not here   how a restore is carried out (store/block_cache.h); what it takes (cost_model.h)
//
// The front is restored, the rest is computed. Within the tokens of one tier the time saved grows
// with each token more, since later tokens cost more to compute and none costs more to restore: so
// the best front ends where a tier's tokens end, and only these places are compared.
#pragma once

#include <cstddef>

#include "engine/runtime/cost_model.h"
#include "store/block_cache.h"

namespace ember {

enum class RestorePolicy : uint8_t {
  kByCost,  // what pays
  kAlways,  // every known token, whatever it takes
};

struct RestorePlan {
  size_t restore_tokens = 0;  // of the prompt's front
  size_t compute_tokens = 0;  // the rest, at least 1
  size_t skipped_tokens = 0;  // known, and computed all the same: they would not pay
  CostModel::TokensByTier from{};  // the restored ones, by tier
  double restore_us = 0;      // predicted
  double compute_us = 0;      // predicted
  // A restore that has not ended by then is given up: computing would have been done by now.
  double patience_us = 0;
};

RestorePlan plan_restore(size_t prompt_tokens, const BlockCache::Match& match,
                         const CostModel& costs, RestorePolicy policy);

// What is skipped is never measured again, and may have become worth it. So a small share of the
// time goes into hits that do not seem to pay.
class RestoreProbe {
 public:
  // The plan by cost, or now and then that of a probe.
  RestorePlan plan(size_t prompt_tokens, const BlockCache::Match& match, const CostModel& costs);

 private:
  double budget_us_ = 0;
};

}  // namespace ember
