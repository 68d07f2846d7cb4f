// Radix index: the walk of a prompt, and the tree and the table of blocks behind one face.
#include "prefix_index/radix_index.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "prefix_index/block_table.h"
#include "prefix_index/run_tree.h"
#include "prefix_index/token_run.h"

namespace ember {

struct RadixIndex::Impl {
  // A block that may come next, and how far it agrees with what is asked for.
  struct Candidate {
    BlockId block = kNoBlock;
    RunPoint after;
    size_t agree = 0;
  };

  explicit Impl(uint32_t block_tokens) : span(block_tokens), tree(block_tokens, table) {}

  bool usable(BlockId block, uint64_t numerics_build) const {
    const BlockEntry& entry = table.entry(block);
    return entry.anywhere() && !entry.damaged &&
           (numerics_build == 0 || entry.numerics_build == numerics_build);
  }
  // Where the scope goes on after `block`; node kNoNode if it does not.
  RunPoint point(ScopeId scope, BlockId block) const {
    if (block == kNoBlock) return tree.root_point(scope, kNoBlock);
    if (tree.scope(block) == scope) return tree.point_after(block);
    EMBER_CHECK(tree.scope(block) == kSharedScope, "a tenant's chain stays the tenant's");
    return tree.root_point(scope, block);
  }
  Candidate best_branch(std::span<const NodeId> branches, TokenSpan rest, uint64_t build) const;
  Candidate best_next(RunPoint point, TokenSpan rest, uint64_t build) const;
  enum class Agreement : uint8_t { kToTheToken, kWholeBlocks };
  void walk(RunPoint point, TokenSpan rest, uint64_t build, Agreement wanted,
            PrefixMatch& path) const;
  PrefixMatch shared_walk(TokenSpan tokens, size_t limit, uint64_t build) const;
  void take_longest(ScopeId scope, TokenSpan tokens, uint64_t build, size_t first_branch,
                    PrefixMatch& best) const;

  const uint32_t span;
  BlockTable table;
  RunTree tree;
};

// The usable run that agrees furthest. In token order agreement falls to both sides of the place
// where `rest` would stand, so the search goes outwards from there and the first usable run is the
// best; of two that agree equally far the one before that place is taken (a tail that agrees whole
// is among those). Cost: logarithmic, plus the unusable runs that agree further.
RadixIndex::Impl::Candidate RadixIndex::Impl::best_branch(std::span<const NodeId> branches,
                                                          TokenSpan rest, uint64_t build) const {
  const auto agreement = [&](size_t i) {
    return i < branches.size() ? agreeing_tokens(tree.first_tokens(branches[i]), rest) : 0;
  };
  size_t right = tree.branches_not_after(branches, rest);
  size_t left = right - 1;  // wraps below the first: no agreement
  size_t left_agrees = agreement(left);
  size_t right_agrees = agreement(right);
  while (left_agrees > 0 || right_agrees > 0) {
    const bool take_left = left_agrees >= right_agrees;
    const NodeId run = branches[take_left ? left : right];
    const BlockId block = tree.first_block(run);
    if (usable(block, build)) return {block, {run, 1}, take_left ? left_agrees : right_agrees};
    if (take_left) {
      left_agrees = agreement(--left);
    } else {
      right_agrees = agreement(++right);
    }
  }
  return {};
}

RadixIndex::Impl::Candidate RadixIndex::Impl::best_next(RunPoint point, TokenSpan rest,
                                                        uint64_t build) const {
  const BlockId next = tree.next_in_run(point);
  if (next == kNoBlock) {
    const size_t ahead = std::min<size_t>(rest.size(), span);
    return best_branch(tree.branches(point), rest.first(ahead), build);
  }
  if (!usable(next, build)) return {};
  return {next, {point.node, point.passed + 1}, agreeing_tokens(tree.next_tokens(point), rest)};
}

// Goes on from `point` as far as usable blocks agree with `rest`.
void RadixIndex::Impl::walk(RunPoint point, TokenSpan rest, uint64_t build, Agreement wanted,
                            PrefixMatch& path) const {
  if (point.node == kNoNode) return;
  while (!rest.empty()) {
    const Candidate next = best_next(point, rest, build);
    const bool whole = next.agree == span;
    if (next.agree == 0 || (wanted == Agreement::kWholeBlocks && !whole)) return;
    path.blocks.push_back(next.block);
    path.tokens += next.agree;
    if (!whole) return;
    rest = rest.subspan(next.agree);
    point = next.after;
  }
}

// The shared blocks that agree whole, cut at `limit` only afterwards: the last of them may be used
// in part where the prompt holds all of it.
PrefixMatch RadixIndex::Impl::shared_walk(TokenSpan tokens, size_t limit, uint64_t build) const {
  const size_t blocks = (limit + span - 1) / span;
  const TokenSpan seen = tokens.first(std::min(tokens.size(), blocks * span));
  PrefixMatch path;
  walk(tree.root_point(kSharedScope, kNoBlock), seen, build, Agreement::kWholeBlocks, path);
  path.tokens = std::min(path.tokens, limit);
  return path;
}

// Replaces `best`, the shared path, by the longest path of the tenant's own. The deepest branch is
// asked first, so of equal ones that stays which shares most.
void RadixIndex::Impl::take_longest(ScopeId scope, TokenSpan tokens, uint64_t build,
                                    size_t first_branch, PrefixMatch& best) const {
  const std::vector<BlockId> shared = best.blocks;
  const auto try_from = [&](RunPoint start, size_t passed) {
    if (start.node == kNoNode) return;
    PrefixMatch own;
    walk(start, tokens.subspan(passed * span), build, Agreement::kToTheToken, own);
    if (passed * span + own.tokens <= best.tokens) return;
    best.tokens = passed * span + own.tokens;
    best.blocks.assign(shared.begin(), shared.begin() + static_cast<std::ptrdiff_t>(passed));
    best.blocks.insert(best.blocks.end(), own.blocks.begin(), own.blocks.end());
  };
  const size_t last = tree.has_branches(scope) ? std::min(shared.size(), tokens.size() / span) : 0;
  for (size_t passed = last; passed > 0 && passed >= first_branch; --passed) {
    try_from(tree.root_point(scope, shared[passed - 1]), passed);
  }
  if (first_branch == 0) try_from(tree.root_point(scope, kNoBlock), 0);
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
    const RunPoint start = impl_->tree.root_point(scope, kNoBlock);
    impl_->walk(start, asked, numerics_build, Impl::Agreement::kToTheToken, path);
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

void RadixIndex::expect(size_t blocks, size_t leaves_on_disk) {
  impl_->table.expect(blocks);
  impl_->table.evictable(Tier::kDisk).reserve(blocks, leaves_on_disk);
}

void RadixIndex::expect_run(BlockId block, size_t more) { impl_->tree.expect_run(block, more); }

BlockId RadixIndex::find_child(ScopeId scope, BlockId parent, TokenSpan tokens) const {
  const RunPoint point = impl_->point(scope, parent);
  return point.node == kNoNode ? kNoBlock : impl_->tree.find(point, tokens);
}

BlockId RadixIndex::find(const BlockHash& hash) const { return impl_->table.find(hash); }

BlockId RadixIndex::find_short(size_t short_hash) const {
  return impl_->table.find_short(short_hash);
}

std::vector<BlockId> RadixIndex::children(ScopeId scope, BlockId block) const {
  const RunPoint point = impl_->point(scope, block);
  if (point.node == kNoNode) return {};
  if (const BlockId next = impl_->tree.next_in_run(point); next != kNoBlock) return {next};
  std::vector<BlockId> blocks;
  for (NodeId run : impl_->tree.branches(point)) blocks.push_back(impl_->tree.first_block(run));
  return blocks;
}

void RadixIndex::erase(BlockId block) { impl_->tree.remove(block); }

const BlockEntry& RadixIndex::entry(BlockId block) const { return impl_->table.entry(block); }

std::vector<TokenId> RadixIndex::tokens(BlockId block) const {
  const TokenSpan tokens = impl_->tree.tokens(block);
  return {tokens.begin(), tokens.end()};
}

ScopeId RadixIndex::scope(BlockId block) const { return impl_->tree.scope(block); }

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
