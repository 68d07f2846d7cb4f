// Radix index: the walk of a prompt, and the tree and the table of blocks behind one face.
#include "prefix_index/radix_index.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "prefix_index/block_table.h"
#include "prefix_index/block_tree.h"
#include "prefix_index/token_run.h"

namespace ember {

struct RadixIndex::Impl {
  // A block that may come next, and how far it agrees with what is asked for.
  struct Candidate {
    BlockId block = kNoBlock;
    size_t agree = 0;
  };

  explicit Impl(uint32_t block_tokens) : span(block_tokens), tree(block_tokens, table) {}

  bool usable(BlockId block, uint64_t numerics_build) const {
    const BlockEntry& entry = table.entry(block);
    return entry.anywhere() && !entry.damaged &&
           (numerics_build == 0 || entry.numerics_build == numerics_build);
  }
  Candidate best_of(std::span<const BlockId> blocks, TokenSpan rest, uint64_t build) const;
  enum class Agreement : uint8_t { kToTheToken, kWholeBlocks };
  void walk(ScopeId scope, BlockId after, TokenSpan rest, uint64_t build, Agreement wanted,
            PrefixMatch& path) const;
  PrefixMatch shared_walk(TokenSpan tokens, size_t limit, uint64_t build) const;
  void take_longest(ScopeId scope, TokenSpan tokens, uint64_t build, size_t first_branch,
                    PrefixMatch& best) const;

  const uint32_t span;
  BlockTable table;
  BlockTree tree;
};

// The usable block that agrees furthest. In token order agreement falls to both sides of the place
// where `rest` would stand, so the search goes outwards from there and the first usable one is the
// best; of two that agree equally far the one before that place is taken (a tail that agrees whole
// is among those). Cost: logarithmic, plus the unusable ones that agree further.
RadixIndex::Impl::Candidate RadixIndex::Impl::best_of(std::span<const BlockId> blocks,
                                                      TokenSpan rest, uint64_t build) const {
  const auto agreement = [&](size_t i) {
    return i < blocks.size() ? agreeing_tokens(tree.tokens(blocks[i]), rest) : 0;
  };
  if (blocks.size() == 1) {  // as it is nearly everywhere
    return usable(blocks.front(), build) ? Candidate{blocks.front(), agreement(0)} : Candidate{};
  }
  size_t right = tree.not_after(blocks, rest);
  size_t left = right - 1;  // wraps below the first: no agreement
  size_t left_agrees = agreement(left);
  size_t right_agrees = agreement(right);
  while (left_agrees > 0 || right_agrees > 0) {
    const bool take_left = left_agrees >= right_agrees;
    const BlockId block = blocks[take_left ? left : right];
    if (usable(block, build)) return {block, take_left ? left_agrees : right_agrees};
    if (take_left) {
      left_agrees = agreement(--left);
    } else {
      right_agrees = agreement(++right);
    }
  }
  return {};
}

// Goes on after a block of the scope, or of `shared`, as far as usable blocks agree with `rest`.
void RadixIndex::Impl::walk(ScopeId scope, BlockId after, TokenSpan rest, uint64_t build,
                            Agreement wanted, PrefixMatch& path) const {
  while (!rest.empty()) {
    const size_t ahead = std::min<size_t>(rest.size(), span);
    const Candidate next = best_of(tree.next(scope, after), rest.first(ahead), build);
    const bool whole = next.agree == span;
    if (next.agree == 0 || (wanted == Agreement::kWholeBlocks && !whole)) return;
    path.blocks.push_back(next.block);
    path.tokens += next.agree;
    if (!whole) return;
    rest = rest.subspan(next.agree);
    after = next.block;
  }
}

// The shared blocks that agree whole, cut at `limit` only afterwards: the last of them may be used
// in part where the prompt holds all of it.
PrefixMatch RadixIndex::Impl::shared_walk(TokenSpan tokens, size_t limit, uint64_t build) const {
  const size_t blocks = (limit + span - 1) / span;
  const TokenSpan seen = tokens.first(std::min(tokens.size(), blocks * span));
  PrefixMatch path;
  walk(kSharedScope, kNoBlock, seen, build, Agreement::kWholeBlocks, path);
  path.tokens = std::min(path.tokens, limit);
  return path;
}

// Replaces `best`, the shared path, by the longest path of the tenant's own. The deepest branch is
// asked first, so of equal ones that stays which shares most.
void RadixIndex::Impl::take_longest(ScopeId scope, TokenSpan tokens, uint64_t build,
                                    size_t first_branch, PrefixMatch& best) const {
  const std::vector<BlockId> shared = best.blocks;
  const auto try_from = [&](BlockId after, size_t passed) {
    if (tree.next(scope, after).empty()) return;
    PrefixMatch own;
    walk(scope, after, tokens.subspan(passed * span), build, Agreement::kToTheToken, own);
    if (passed * span + own.tokens <= best.tokens) return;
    best.tokens = passed * span + own.tokens;
    best.blocks.assign(shared.begin(), shared.begin() + static_cast<std::ptrdiff_t>(passed));
    best.blocks.insert(best.blocks.end(), own.blocks.begin(), own.blocks.end());
  };
  const size_t last = tree.has_branches(scope) ? std::min(shared.size(), tokens.size() / span) : 0;
  for (size_t passed = last; passed > 0 && passed >= first_branch; --passed) {
    try_from(shared[passed - 1], passed);
  }
  if (first_branch == 0) try_from(kNoBlock, 0);
}

RadixIndex::RadixIndex(uint32_t block_tokens) {
  EMBER_CHECK(block_tokens > 0, "a block has at least one token");
  impl_ = std::make_unique<Impl>(block_tokens);
}

RadixIndex::~RadixIndex() = default;

PrefixMatch RadixIndex::match(ScopeId scope, TokenSpan tokens, size_t limit,
                              uint64_t numerics_build, size_t shared_blocks) const {
  const TokenSpan asked = tokens.first(std::min(tokens.size(), limit));
  PrefixMatch path;
  if (scope == kSharedScope) {
    impl_->walk(scope, kNoBlock, asked, numerics_build, Impl::Agreement::kToTheToken, path);
    return path;
  }
  path = impl_->shared_walk(tokens, asked.size(), numerics_build);
  impl_->take_longest(scope, asked, numerics_build, shared_blocks, path);
  return path;
}

void RadixIndex::touch(BlockId block, uint64_t now, bool hit) {
  impl_->table.touch(block, now, hit);
}

BlockId RadixIndex::insert(ScopeId scope, BlockId parent, TokenSpan tokens,
                           const BlockHash& hash, uint64_t numerics_build, uint64_t now) {
  EMBER_CHECK(!tokens.empty() && tokens.size() <= impl_->span, "a block has 1 to span tokens");
  BlockEntry entry;
  if (parent != kNoBlock) {
    const BlockEntry& before = impl_->table.entry(parent);
    EMBER_CHECK(before.token_count == impl_->span, "a parent is a full block");
    entry.position = before.position + 1;
  }
  if (const BlockId known = find_child(scope, parent, tokens); known != kNoBlock) return known;
  entry.hash = hash;
  entry.parent = parent;
  entry.token_count = static_cast<uint32_t>(tokens.size());
  entry.numerics_build = numerics_build;
  entry.last_use = now;
  return impl_->tree.add(scope, entry, tokens);
}

void RadixIndex::prefetch(const BlockHash& hash) const { impl_->table.prefetch(hash); }

void RadixIndex::expect(size_t blocks, size_t leaves_on_disk) {
  impl_->table.expect(blocks);
  impl_->table.evictable(Tier::kDisk).reserve(blocks, leaves_on_disk);
}

BlockId RadixIndex::find_child(ScopeId scope, BlockId parent, TokenSpan tokens) const {
  return impl_->tree.find(impl_->tree.next(scope, parent), tokens);
}

BlockId RadixIndex::find(const BlockHash& hash) const { return impl_->table.find(hash); }

BlockId RadixIndex::find_short(size_t short_hash) const {
  return impl_->table.find_short(short_hash);
}

bool RadixIndex::names(BlockId block, const BlockHash& hash) const {
  return impl_->table.has(block) && impl_->table.entry(block).hash == hash;
}

std::vector<BlockId> RadixIndex::children(ScopeId scope, BlockId block) const {
  const std::span<const BlockId> next = impl_->tree.next(scope, block);
  return {next.begin(), next.end()};
}

void RadixIndex::erase(BlockId block) { impl_->tree.remove(block); }

const BlockEntry& RadixIndex::entry(BlockId block) const { return impl_->table.entry(block); }

std::vector<TokenId> RadixIndex::tokens(BlockId block) const {
  const TokenSpan tokens = impl_->tree.tokens(block);
  return {tokens.begin(), tokens.end()};
}

ScopeId RadixIndex::scope(BlockId block) const { return impl_->table.scope(block); }

void RadixIndex::set_place(BlockId block, Tier tier, int32_t place) {
  impl_->table.set_place(block, tier, place);
}

void RadixIndex::clear_place(BlockId block, Tier tier) { impl_->table.clear_place(block, tier); }

void RadixIndex::set_damaged(BlockId block, bool damaged) {
  impl_->table.set_damaged(block, damaged);
}

void RadixIndex::set_numerics_build(BlockId block, uint64_t numerics_build) {
  impl_->table.set_numerics_build(block, numerics_build);
}

const LeafLru& RadixIndex::evictable(Tier tier) const {
  return std::as_const(impl_->table).evictable(tier);
}

LeafLru& RadixIndex::evictable(Tier tier) { return impl_->table.evictable(tier); }

size_t RadixIndex::size() const { return impl_->table.size(); }

size_t RadixIndex::count(Tier tier) const { return impl_->table.count(tier); }

size_t RadixIndex::gaps() const { return impl_->table.gaps(); }

size_t RadixIndex::memory_bytes() const {
  return impl_->table.memory_bytes() + impl_->tree.memory_bytes();
}

std::vector<BlockId> RadixIndex::all_blocks() const { return impl_->tree.all_blocks(); }

std::vector<BlockId> RadixIndex::blocks_of(ScopeId scope) const {
  return impl_->tree.blocks_of(scope);
}

void RadixIndex::check_invariants() const {
  impl_->tree.check_invariants();
  impl_->table.check_invariants(impl_->tree.all_blocks());
}

}  // namespace ember
