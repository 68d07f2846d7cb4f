// Restore plan: how much of a known prefix is brought up, and where computing begins. Pure.
//
// Journey    radix_index -> [restore_plan] -> block_cache (restore), forward (prefill)
// Invariant  at least the prompt's last token is computed: it gives the first logits
// Not here   how a restore is carried out (store/block_cache.h)
#pragma once

#include <algorithm>
#include <cstddef>

#include "store/block_cache.h"

namespace ember {

struct RestorePlan {
  size_t restore_tokens = 0;  // of the prompt's front
  size_t compute_tokens = 0;  // the rest, at least 1
};

// Takes every known token: on the CPU device even the disk is many times faster than prefill
// (bench/engine_bench prints both).
inline RestorePlan plan_restore(size_t prompt_tokens, const BlockCache::Match& match) {
  const size_t restore = std::min(match.tokens, prompt_tokens - 1);
  return {.restore_tokens = restore, .compute_tokens = prompt_tokens - restore};
}

}  // namespace ember
