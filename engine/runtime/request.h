// Request: what is asked of the engine, and what became of it.
//
// Journey    tokens -> [request] -> scheduler -> [outcome] -> client
// Threads    made by the client, read and answered on the engine thread
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "prefix_index/token.h"
#include "store/block_cache.h"

namespace ember {

enum class FinishReason : uint8_t { kStop, kLength, kFailed };

constexpr const char* finish_reason_name(FinishReason reason) {
  return reason == FinishReason::kStop     ? "stop"
         : reason == FinishReason::kLength ? "length"
                                           : "failed";
}

// Where the time to the first token went, in microseconds.
struct TtftParts {
  int64_t queue_us = 0;    // until a place in the batch was free
  int64_t match_us = 0;    // index look-up
  int64_t restore_us = 0;  // until the last restored row was readable
  int64_t prefill_us = 0;  // computing the rest of the prompt, and the first draw
  int64_t total_us() const { return queue_us + match_us + restore_us + prefill_us; }
};

struct Outcome {
  std::vector<TokenId> token_ids;  // drawn by this request, without the end token
  FinishReason finish = FinishReason::kFailed;
  Status status;  // why, when kFailed
  uint64_t prompt_tokens = 0;
  uint64_t computed_tokens = 0;  // of the prompt; restored + computed = prompt
  uint64_t awaited_tokens = 0;   // of the prompt that another request was just computing
  uint64_t skipped_tokens = 0;   // known, and computed: restoring them would not have paid
  RestoreReport restore;
  int64_t predicted_restore_us = 0;  // of what was restored; ttft.restore_us is what it took
  int64_t predicted_compute_us = 0;  // of the prompt's rest; ttft.prefill_us is what it took
  TtftParts ttft;
  int64_t decode_us = 0;  // from the first drawn token to the last
};

struct Request {
  std::vector<TokenId> prompt;  // at least one token
  uint32_t max_tokens = 0;      // to draw; at least 1; cut to what the context leaves
  float temperature = 0;
  uint64_t seed = 0;
  RequestScope scope = {};  // for whom: whose blocks it finds and makes
  bool use_cache = true;  // false: neither matches nor is matched
  // Runs while nobody else's request waits or runs, and ends with kBusy as soon as one comes: what
  // it has computed by then is in the cache, and submitted again it goes on from there.
  bool background = false;
  std::function<void(size_t computed, size_t prompt)> on_prefill;  // after each step of the prompt
  std::function<void(TokenId)> on_token;        // each drawn token but the end token
  std::function<void(const Outcome&)> on_done;  // once, on the engine thread
};

}  // namespace ember
