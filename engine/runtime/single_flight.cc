// Who waits for whom: prompts are compared with those of the prefills under way.
#include "engine/runtime/single_flight.h"

#include <algorithm>

#include "prefix_index/token_run.h"

namespace ember {
namespace {

bool on_its_way(const Sequence& sequence, size_t tokens) {
  const bool prompt_pending =
      sequence.phase == Phase::kRestoring || sequence.phase == Phase::kPrefill;
  return prompt_pending && sequence.request.use_cache && sequence.computed < tokens;
}

// Tokens of the request's prompt that one of `other` will find once they are committed.
size_t visible_tokens(const Request& request, const RequestScope& other) {
  const RequestScope& scope = request.scope;
  const bool all = scope.tenant.empty() || scope.tenant == other.tenant;
  return all ? request.prompt.size() : std::min(scope.publish_tokens, request.prompt.size());
}

}  // namespace

bool awaits_prefix(Sequence& queued, Sequences running, size_t known_tokens, size_t block_tokens) {
  queued.awaited_id = 0;
  queued.awaited_tokens = known_tokens;
  // The prompt's last token is always computed by its own request.
  const TokenSpan useful = TokenSpan(queued.request.prompt).first(queued.prompt_tokens - 1);
  for (const auto& other : running) {
    const size_t visible = visible_tokens(other->request, queued.request.scope);
    const size_t agree =
        agreeing_tokens(useful, TokenSpan(other->request.prompt).first(visible));
    const size_t blocks_end = agree / block_tokens * block_tokens;
    if (blocks_end <= queued.awaited_tokens || !on_its_way(*other, blocks_end)) continue;
    queued.awaited_id = other->id;
    queued.awaited_tokens = blocks_end;
  }
  if (queued.awaited_id == 0) return false;
  const uint64_t more = queued.awaited_tokens - known_tokens;
  queued.outcome.awaited_tokens = std::max(queued.outcome.awaited_tokens, more);
  return true;
}

bool still_awaits(const Sequence& queued, Sequences running) {
  if (queued.awaited_id == 0) return false;
  return std::any_of(running.begin(), running.end(), [&](const auto& other) {
    return other->id == queued.awaited_id && on_its_way(*other, queued.awaited_tokens);
  });
}

}  // namespace ember
