// What a request asks of the cache: match, open a chain, commit.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/cache/block_cache_impl.h"

namespace ember {

// For a tenant of whom nothing is stored there is no number yet; looking gives it none.
ChainScope BlockCacheImpl::known_scope(const RequestScope& scope) const {
  if (scope.tenant.empty()) return {};
  const size_t shared_blocks =
      scope.may_publish ? scope.publish_tokens / layout_.block_tokens() : 0;
  return {scopes_.find(scope.tenant), shared_blocks};
}

Result<ChainScope> BlockCacheImpl::chain_scope(const RequestScope& scope) {
  EMBER_TRY(check_request_scope(scope, scopes_.policy()));
  ChainScope found = known_scope(scope);
  if (found.own == kNoScope) {
    EMBER_ASSIGN(found.own, scopes_.add(scope.tenant));
  }
  return found;
}

BlockCache::Match BlockCacheImpl::match(TokenSpan prompt, const RequestScope& scope) {
  Match match;
  if (prompt.empty() || !check_request_scope(scope, scopes_.policy()).ok()) return match;
  match.looking_up = reopening_.look_up(
      prompt, scope.tenant.empty() ? std::string(kSharedScopeName) : scope.tenant);
  const ChainScope asked = known_scope(scope);
  const PrefixMatch found = ledger_.index().match(asked.own, prompt, prompt.size() - 1,
                                                  context_.numerics_build, asked.shared_blocks);
  match.tokens = found.tokens;
  size_t rest = found.tokens;
  for (BlockId block : found.blocks) {
    const size_t agree = std::min<size_t>(rest, layout_.block_tokens());
    const Tier tier = best_tier(block);
    match.tokens_by_tier[static_cast<size_t>(tier)] += agree;
    if (match.runs.empty() || match.runs.back().tier != tier) match.runs.push_back({tier, 0});
    match.runs.back().tokens += agree;
    rest -= agree;
  }
  return match;
}

Tier BlockCacheImpl::best_tier(BlockId block) const {
  const BlockEntry& entry = ledger_.entry(block);
  return *std::find_if(kAllTiers.begin(), kAllTiers.end(),
                       [&](Tier tier) { return entry.in(tier) || tier == Tier::kDisk; });
}

Result<std::unique_ptr<Chain>> BlockCacheImpl::open_chain(TokenSpan prompt, size_t restore_tokens,
                                                          size_t max_tokens,
                                                          const RequestScope& scope,
                                                          int64_t patience_us) {
  EMBER_ASSIGN(const ChainScope asked, chain_scope(scope));
  const size_t span = layout_.block_tokens();
  const size_t total = (std::max(max_tokens, prompt.size()) + span - 1) / span;
  const uint32_t capacity = device_pool_->slots().size();
  if (total > capacity) {
    return Error{ErrorCode::kInvalidArgument,
                 "a request of " + std::to_string(max_tokens) + " tokens needs " +
                     std::to_string(total) + " device slots, found " + std::to_string(capacity) +
                     ": raise ram_bytes"};
  }
  scrubber_.yield();
  warm_up_.yield();
  const int64_t began_us = clock_.now_us();
  auto chain = std::make_unique<ChainImpl>(context_, restores_, open_chains_, asked);
  chain->set_conversation(scope.conversation);
  add_matches(*chain, prompt, std::min(restore_tokens, prompt.empty() ? 0 : prompt.size() - 1));
  const int64_t match_us = clock_.now_us() - began_us;
  std::optional<std::vector<SlotLease>> slots = take_slots(*chain, total);
  if (!slots) {
    return Error{ErrorCode::kCapacity,
                 "device slots: needed " + std::to_string(total - chain->in_place()) +
                     " of " + std::to_string(capacity) + ", found fewer that nobody holds"};
  }
  foresee(*chain, prompt);
  chain->set_slots(std::move(*slots));
  const int64_t longest_us = context_.tuning.restore_deadline_us;
  if (patience_us <= 0 || patience_us > longest_us) patience_us = longest_us;
  chain->start(prompt, match_us, clock_.now_us() + patience_us);
  pump();
  return std::unique_ptr<Chain>(std::move(chain));
}

// Tails are few bytes, and stay where they are.
std::unique_ptr<Prefetch> BlockCacheImpl::prefetch(TokenSpan prompt, size_t tokens,
                                                   const RequestScope& scope) {
  std::vector<BlockHash> hashes;
  if (check_request_scope(scope, scopes_.policy()).ok()) {
    const ChainScope asked = known_scope(scope);
    const PrefixMatch found = ledger_.index().match(
        asked.own, prompt, std::min(tokens, prompt.size()), context_.numerics_build,
        asked.shared_blocks);
    for (const BlockId block : found.blocks) {
      if (!ledger_.is_tail(block)) hashes.push_back(ledger_.entry(block).hash);
    }
  }
  auto handle = prefetcher_.begin(std::move(hashes));
  pump();
  return handle;
}

// Leases every copy that the restore will read, so that taking slots cannot evict it.
void BlockCacheImpl::add_matches(ChainImpl& chain, TokenSpan prompt, size_t limit) {
  if (limit == 0) return;
  const PrefixMatch found =
      ledger_.index().match(chain.scope().own, prompt, limit, context_.numerics_build,
                            chain.scope().shared_blocks);
  ledger_.use(found.blocks, true);
  size_t rest = found.tokens;
  for (BlockId block : found.blocks) {
    ChainImpl::Matched matched;
    matched.block = block;
    matched.tokens = static_cast<uint32_t>(std::min<size_t>(rest, layout_.block_tokens()));
    matched.whole = matched.tokens == layout_.block_tokens();
    matched.from = best_tier(block);
    if (matched.whole && matched.from != Tier::kDevice) matched.joined = restores_.find(block);
    if (matched.joined != nullptr) {
      matched.from = matched.joined->from;
    } else if (matched.from == Tier::kDevice || matched.from == Tier::kHost) {
      matched.source = ledger_.lease_copy(block, matched.from);
    }
    rest -= matched.tokens;
    chain.add_matched(std::move(matched));
  }
}

// Slots for all blocks that are not in place. What gives way, in this order: copies that nobody
// holds, the end of this restore, blocks that wait to be offloaded.
std::optional<std::vector<SlotLease>> BlockCacheImpl::take_slots(ChainImpl& chain, size_t total) {
  std::vector<SlotLease> slots;
  while (slots.size() < total - chain.in_place()) {
    std::optional<SlotLease> slot = ledger_.take_device_slot();
    if (slot) {
      slots.push_back(std::move(*slot));
    } else if (chain.matched() > chain.in_place()) {
      chain.drop_last_matched();
    } else if (!offload_.give_up_newest()) {
      return std::nullopt;
    }
  }
  return slots;
}

void BlockCacheImpl::commit(Chain& chain, TokenSpan tokens) {
  auto& ours = static_cast<ChainImpl&>(chain);
  ours.append(tokens);
  tell_shadows(ours);
  const size_t span = layout_.block_tokens();
  while ((ours.blocks().size() + 1) * span <= ours.length()) {
    commit_block(ours, ours.blocks().size());
  }
  pump();
}

// Whether the entry is known but of no use to us as it is.
bool BlockCacheImpl::heals(BlockId block) const {
  const BlockEntry& entry = ledger_.entry(block);
  const bool other_build = context_.numerics_build != 0 &&
                           entry.numerics_build != context_.numerics_build;
  return entry.damaged || other_build;
}

BlockHash BlockCacheImpl::hash_after(ScopeId scope, BlockId parent, TokenSpan tokens) const {
  const BlockHasher& hasher = scopes_.hasher(scope);
  return hasher.next(parent == kNoBlock ? hasher.root() : ledger_.entry(parent).hash, tokens);
}

// Once a chain has left `shared` it does not come back. Until then a full block is shared if the
// chain publishes it, or if it was published already: a tenant that computes it again (or heals it)
// needs no copy of its own.
ScopeId BlockCacheImpl::scope_of_next(const ChainImpl& chain, TokenSpan tokens) const {
  const RadixIndex& index = ledger_.index();
  const ChainScope& scope = chain.scope();
  const BlockId parent = chain.blocks().empty() ? kNoBlock : chain.blocks().back();
  if (parent != kNoBlock && index.scope(parent) != kSharedScope) return scope.own;
  if (tokens.size() < layout_.block_tokens()) return scope.own;
  const bool shared = chain.blocks().size() < scope.shared_blocks ||
                      index.find_child(kSharedScope, parent, tokens) != kNoBlock;
  return shared ? kSharedScope : scope.own;
}

// Not stored, or stored where it could not be read.
bool BlockCacheImpl::must_store(BlockId block) const {
  return !ledger_.entry(block).in(Tier::kDisk) || ledger_.notes(block).read_failed;
}

void BlockCacheImpl::commit_block(ChainImpl& chain, size_t position) {
  const size_t span = layout_.block_tokens();
  const TokenSpan tokens = chain.tokens().subspan(position * span, span);
  const BlockId parent = position == 0 ? kNoBlock : chain.blocks().back();
  const ScopeId scope = scope_of_next(chain, tokens);
  const bool published = scope != chain.scope().own &&
                         ledger_.index().find_child(scope, parent, tokens) == kNoBlock;
  const BlockId block = ledger_.insert(scope, parent, tokens, hash_after(scope, parent, tokens),
                                       context_.numerics_build);
  if (published) ledger_.set_publisher(block, chain.scope().own);
  const bool known = ledger_.entry(block).anywhere();
  chain.add_block(block);
  ++counters_.committed_blocks;
  ++scopes_.counters(chain.scope().own).committed_blocks;
  if (heals(block)) {
    ledger_.reset(block, context_.numerics_build);
  } else if (known) {
    ++counters_.dedup_blocks;
    dedup_.compare(block, chain.slot(position).share());
  }
  const SlotLease& slot = chain.slot(position);
  ledger_.publish(block, Tier::kDevice, slot);
  ledger_.use({block}, false);
  if (chain.one_shot()) {
    if (!known) ledger_.ranks().set_done(block);
    return;
  }
  if (position >= chain.told_blocks()) ledger_.ranks().extend(parent, block);
  if (must_store(block)) offload_.add(block, slot.share());
}

void BlockCacheImpl::commit_tail(Chain& chain) {
  auto& ours = static_cast<ChainImpl&>(chain);
  EMBER_CHECK(ours.ready(), "a tail is committed of a chain that is still restoring");
  const size_t span = layout_.block_tokens();
  const size_t full = ours.blocks().size();
  const TokenSpan tokens = ours.tokens().subspan(full * span);
  if (!tokens.empty() && !ours.one_shot()) {
    const BlockId parent = full == 0 ? kNoBlock : ours.blocks().back();
    const ScopeId scope = scope_of_next(ours, tokens);
    const BlockId tail = ledger_.insert(scope, parent, tokens, hash_after(scope, parent, tokens),
                                        context_.numerics_build);
    if (heals(tail)) ledger_.reset(tail, context_.numerics_build);
    ledger_.use({tail}, false);
    if (must_store(tail)) offload_.add(tail, ours.slot(full).share());
  }
  offload_.turn_ended();
  pump();
}

}  // namespace ember
