// What a client tells of the next use, and what the shadow directories learn of each request.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/cache/block_cache_impl.h"

namespace ember {

// The names of the prompt's full blocks, so that the shadows see the request whole and once.
void BlockCacheImpl::foresee(ChainImpl& chain, TokenSpan prompt) const {
  if (options_.settings.eviction == EvictionPolicy::kLeafLru) return;
  const size_t span = layout_.block_tokens();
  const ChainScope& scope = chain.scope();
  const RadixIndex& index = ledger_.index();
  const PrefixMatch found = index.match(scope.own, prompt, prompt.size(), 0, scope.shared_blocks);
  std::vector<ShadowId> blocks;
  BlockHash last;
  bool shared = true;  // a chain that has left what is shared does not come back
  for (size_t i = 0; (i + 1) * span <= prompt.size(); ++i) {
    if ((i + 1) * span <= found.tokens) {
      last = ledger_.entry(found.blocks[i]).hash;
      shared = index.scope(found.blocks[i]) == kSharedScope;
    } else {
      shared = shared && (i < scope.shared_blocks || scope.own == kSharedScope);
      const BlockHasher& hasher = scopes_.hasher(shared ? kSharedScope : scope.own);
      last = hasher.next(i == 0 ? hasher.root() : last, prompt.subspan(i * span, span));
    }
    blocks.push_back(EvictionRanks::shadow_id(last));
  }
  chain.foresee(std::move(blocks));
}

void BlockCacheImpl::tell_shadows(ChainImpl& chain) {
  if (context_.disk != nullptr) ledger_.expect_disk_capacity(context_.disk_limit_bytes);
  const std::vector<ShadowId> blocks = chain.take_foreseen();
  if (blocks.empty() || chain.one_shot()) return;
  ledger_.ranks().request(blocks);
  chain.set_told_blocks(blocks.size());
}

void BlockCacheImpl::hint(Chain& chain, const UseHint& hint) {
  auto& ours = static_cast<ChainImpl&>(chain);
  if (hint.one_shot) ours.set_one_shot();
  hint_blocks(ours.blocks(), hint);
}

void BlockCacheImpl::hint(TokenSpan prefix, const UseHint& hint, const RequestScope& scope) {
  hint_blocks(known_blocks(prefix, scope), hint);
}

void BlockCacheImpl::hint_blocks(std::span<const BlockId> blocks, const UseHint& hint) {
  EvictionRanks& ranks = ledger_.ranks();
  if (hint.session_ended) {
    ranks.set_done(blocks);
  } else if (hint.next_use_us > 0) {
    const int64_t within_us = std::min(hint.next_use_us, kLongestPinUs);
    ranks.pin(blocks, PinTable::Kind::kExpected, clock_.now_us() + within_us,
              lowest_tier_blocks());
  }
}

Result<size_t> BlockCacheImpl::pin(TokenSpan prefix, int64_t ttl_us,
                                   const RequestScope& scope) {
  if (ttl_us < 0 || ttl_us > kLongestPinUs) {
    return Error{ErrorCode::kInvalidArgument,
                 "ttl_us: found " + std::to_string(ttl_us) + ", expected 0 to " +
                     std::to_string(kLongestPinUs)};
  }
  EvictionRanks& ranks = ledger_.ranks();
  const int64_t now_us = clock_.now_us();
  ranks.expire_pins(now_us);
  const std::vector<BlockId> blocks = known_blocks(prefix, scope);
  if (ttl_us == 0) {
    ranks.unpin(blocks);
    return size_t{0};
  }
  const size_t capacity = lowest_tier_blocks();
  if (!ranks.pin(blocks, PinTable::Kind::kPinned, now_us + ttl_us, capacity)) {
    ++counters_.refused_pins;
    return Error{ErrorCode::kCapacity,
                 "pins: " + std::to_string(ranks.pins().size()) +
                     " blocks are pinned or expected, " + std::to_string(blocks.size()) +
                     " more would pass a fourth of " +
                     std::to_string(capacity)};
  }
  return blocks.size() * layout_.block_tokens();
}

// Full blocks only: a tail goes with the turn that extends it.
std::vector<BlockId> BlockCacheImpl::known_blocks(TokenSpan prefix,
                                                  const RequestScope& scope) const {
  if (!check_request_scope(scope, scopes_.policy()).ok()) return {};
  const ChainScope asked = known_scope(scope);
  PrefixMatch found = ledger_.index().match(asked.own, prefix, prefix.size(),
                                            context_.numerics_build, asked.shared_blocks);
  found.blocks.resize(found.tokens / layout_.block_tokens());
  return std::move(found.blocks);
}

size_t BlockCacheImpl::lowest_tier_blocks() const {
  if (context_.disk == nullptr) return std::max(plan_.device_slots, plan_.host_slots);
  const size_t expected = ledger_.ranks().duel(Tier::kDisk).capacity();
  return expected > 0 ? expected : std::max(plan_.device_slots, plan_.host_slots);
}

}  // namespace ember
