// Sequence: one request on its way through the engine: where its tokens, latents and clock stand.
//
// Journey    scheduler's own view of a request: queued -> restoring -> prefill -> decode -> done
// Owns       the tokens so far and the chain of device slots
// Invariant  computed <= tokens.size(); tokens before `computed` have their latents in the chain
// Threads    engine thread only
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/runtime/request.h"
#include "engine/runtime/restore_plan.h"
#include "prefix_index/token.h"
#include "store/block_cache.h"

namespace ember {

enum class Phase : uint8_t { kQueued, kRestoring, kPrefill, kDecode, kDone };

struct Sequence {
  Request request;
  std::vector<TokenId> tokens;  // the prompt, then what was drawn
  size_t prompt_tokens = 0;
  size_t limit_tokens = 0;  // prompt and answer may have together
  size_t computed = 0;      // tokens whose latents are in place
  size_t in_step = 0;       // tokens of it in the step in flight
  Phase phase = Phase::kQueued;
  uint64_t id = 0;  // of the scheduler's, from 1
  bool set_aside = false;      // while queued: it has nothing to do in this turn
  bool found_no_room = false;  // while queued: the next to be admitted
  bool prefetch_planned = false;
  std::unique_ptr<Prefetch> prefetch;  // while queued: its blocks on their way to RAM
  // While queued: the sequence that is computing this one's prefix, and how far it must get.
  uint64_t awaited_id = 0;
  size_t awaited_tokens = 0;
  std::unique_ptr<Chain> chain;
  bool ahead = false;          // in the step in flight, while its last layers are still coming
  uint32_t traced_groups = 0;  // of its restore
  RestorePlan plan;
  Outcome outcome;
  int64_t submitted_us = 0;
  int64_t admitted_us = 0;
  int64_t restored_us = 0;
  int64_t first_token_us = 0;

  size_t uncomputed() const { return tokens.size() - computed; }
};

}  // namespace ember
