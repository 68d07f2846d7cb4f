// Naive index: brute force over the list of paths.
#include "tests/prefix_index/naive_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ember {

bool NaiveIndex::is_parent(const NaiveBlock& parent, const NaiveBlock& child) const {
  const size_t before = (child.path.size() - child.token_count) / span_;
  const bool first_alone = child.scope != kSharedScope && before == child.shared_blocks;
  const bool same_chain = first_alone ? parent.scope == kSharedScope
                                      : parent.scope == child.scope &&
                                            parent.shared_blocks == child.shared_blocks;
  return same_chain && parent.path.size() + child.token_count == child.path.size() &&
         std::equal(parent.path.begin(), parent.path.end(), child.path.begin());
}

const NaiveBlock* NaiveIndex::parent_of(const NaiveBlock& child) const {
  for (const NaiveBlock& block : blocks_) {
    if (is_parent(block, child)) return &block;
  }
  return nullptr;
}

std::vector<const NaiveBlock*> NaiveIndex::children_of(const NaiveBlock& parent) const {
  std::vector<const NaiveBlock*> children;
  for (const NaiveBlock& block : blocks_) {
    if (is_parent(parent, block)) children.push_back(&block);
  }
  std::sort(children.begin(), children.end(),
            [](const NaiveBlock* a, const NaiveBlock* b) { return a->path < b->path; });
  return children;
}

bool NaiveIndex::usable(const NaiveBlock& block, uint64_t build) const {
  return block.anywhere() && !block.damaged && (build == 0 || block.build == build);
}

bool NaiveIndex::whole_path_usable(const NaiveBlock& block, uint64_t build) const {
  const NaiveBlock* at = &block;
  for (; at != nullptr; at = parent_of(*at)) {
    if (!usable(*at, build)) return false;
  }
  return true;
}

NaiveIndex::Longest NaiveIndex::match(ScopeId scope, TokenSpan tokens, size_t limit,
                                      uint64_t build, size_t shared_blocks) const {
  Longest best;
  for (const NaiveBlock& block : blocks_) {
    const bool shared = block.scope == kSharedScope;
    if ((!shared && block.scope != scope) || !whole_path_usable(block, build)) continue;
    if (!shared && block.shared_blocks < shared_blocks) continue;
    size_t agree = 0;
    while (agree < std::min(tokens.size(), block.path.size()) &&
           tokens[agree] == block.path[agree]) {
      ++agree;
    }
    // A tenant sees of shared blocks whole ones only, and its own behind all shared ones.
    const size_t before = block.shared_blocks * span_;
    if (scope != kSharedScope && shared) agree -= agree % span_;
    if (!shared && (agree < before || std::min(agree, limit) <= before)) continue;
    agree = std::min(agree, limit);
    const size_t blocks = (agree + span_ - 1) / span_;
    const size_t shared_part = shared ? blocks : std::min(block.shared_blocks, blocks);
    if (agree > best.tokens) best = {agree, shared_part};
    if (agree == best.tokens) best.shared_blocks = std::max(best.shared_blocks, shared_part);
  }
  return best;
}

std::vector<BlockId> NaiveIndex::child_ids(const NaiveBlock& parent, ScopeId scope) const {
  std::vector<BlockId> ids;
  for (const NaiveBlock* child : children_of(parent)) {
    if (child->scope == scope) ids.push_back(child->id);
  }
  return ids;
}

bool NaiveIndex::holds_parent(const NaiveBlock& child, size_t tier) const {
  if (!child.anywhere()) {
    const std::vector<const NaiveBlock*> below = children_of(child);
    return std::any_of(below.begin(), below.end(),
                       [&](const NaiveBlock* block) { return holds_parent(*block, tier); });
  }
  for (size_t lower = tier + 1; lower < kTierCount; ++lower) {
    if (child.in(lower)) return false;
  }
  return true;
}

bool NaiveIndex::may_leave(const NaiveBlock& block, size_t tier) const {
  if (!block.in(tier)) return false;
  NaiveBlock rest = block;
  rest.place[tier] = -1;
  for (const NaiveBlock* child : children_of(block)) {
    if (holds_parent(*child, tier)) return false;
    if (!rest.anywhere() && holds_parent(*child, kTierCount - 1)) return false;
  }
  return true;
}

bool NaiveIndex::stranded(const NaiveBlock& block) const {
  if (!block.anywhere()) return false;
  for (const NaiveBlock* at = parent_of(block); at != nullptr; at = parent_of(*at)) {
    if (!at->anywhere() && !at->damaged) return true;
  }
  return false;
}

void NaiveIndex::expect_block_equal(const RadixIndex& index, const NaiveBlock& block) const {
  const BlockEntry& entry = index.entry(block.id);
  const NaiveBlock* parent = parent_of(block);
  ASSERT_EQ(entry.parent, parent == nullptr ? kNoBlock : parent->id);
  ASSERT_EQ(entry.token_count, block.token_count);
  ASSERT_EQ(entry.position, (block.path.size() - block.token_count) / span_);
  ASSERT_EQ(entry.numerics_build, block.build);
  ASSERT_EQ(entry.last_use, block.last_use);
  ASSERT_EQ(entry.hits, block.hits);
  ASSERT_EQ(entry.damaged, block.damaged);
  ASSERT_EQ(entry.place, block.place);
  const TokenSpan tokens = TokenSpan(block.path).last(block.token_count);
  ASSERT_EQ(index.tokens(block.id), std::vector<TokenId>(tokens.begin(), tokens.end()));
  ASSERT_EQ(index.scope(block.id), block.scope);
  ASSERT_EQ(index.find_child(block.scope, entry.parent, tokens), block.id);
  ASSERT_EQ(entry.children, children_of(block).size());
  for (uint32_t scope = 0; scope < 4; ++scope) {
    if (block.scope != kSharedScope && block.scope != ScopeId{scope}) continue;
    ASSERT_EQ(index.children(ScopeId{scope}, block.id), child_ids(block, ScopeId{scope}));
  }
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    ASSERT_EQ(index.evictable(kAllTiers[tier]).contains(block.last_use, block.id),
              may_leave(block, tier))
        << "tier " << tier << ", block of " << block.path.size() << " tokens";
  }
}

void NaiveIndex::expect_equal(const RadixIndex& index) const {
  index.check_invariants();
  ASSERT_EQ(index.size(), blocks_.size());
  for (const NaiveBlock& block : blocks_) {
    expect_block_equal(index, block);
    if (::testing::Test::HasFatalFailure()) return;
  }
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    size_t resident = 0;
    size_t evictable = 0;
    for (const NaiveBlock& block : blocks_) {
      if (block.in(tier)) ++resident;
      if (may_leave(block, tier)) ++evictable;
    }
    ASSERT_EQ(index.count(kAllTiers[tier]), resident);
    ASSERT_EQ(index.evictable(kAllTiers[tier]).size(), evictable);
  }
  std::set<BlockId> seen;
  for (BlockId block : index.all_blocks()) {
    const BlockId parent = index.entry(block).parent;
    ASSERT_TRUE(parent == kNoBlock || seen.contains(parent)) << "a child before its parent";
    ASSERT_TRUE(seen.insert(block).second);
  }
  for (uint32_t scope = 0; scope < 4; ++scope) {
    for (BlockId block : index.blocks_of(ScopeId{scope})) {
      ASSERT_EQ(index.scope(block), ScopeId{scope});
      seen.erase(block);
    }
  }
  ASSERT_TRUE(seen.empty()) << "each block is its scope's";
}

void NaiveIndex::expect_same_match(const RadixIndex& index, ScopeId scope, TokenSpan tokens,
                                   size_t limit, uint64_t build, size_t shared_blocks) const {
  const PrefixMatch found = index.match(scope, tokens, limit, build, shared_blocks);
  const Longest expected = match(scope, tokens, limit, build, shared_blocks);
  ASSERT_EQ(found.tokens, expected.tokens);
  ASSERT_EQ(found.blocks.size(), (found.tokens + span_ - 1) / span_);
  size_t shared = 0;
  for (BlockId block : found.blocks) {
    if (index.scope(block) == kSharedScope) ++shared;
  }
  ASSERT_EQ(shared, expected.shared_blocks) << "of equal paths the one that shares most";
  for (size_t i = shared; i < found.blocks.size(); ++i) {
    ASSERT_EQ(index.scope(found.blocks[i]), scope) << "never back, never another tenant's";
  }
  BlockId before = kNoBlock;
  std::vector<TokenId> path;
  for (BlockId block : found.blocks) {
    const BlockEntry& entry = index.entry(block);
    ASSERT_EQ(entry.parent, before);
    ASSERT_TRUE(entry.anywhere() && !entry.damaged);
    ASSERT_TRUE(build == 0 || entry.numerics_build == build);
    const std::vector<TokenId> more = index.tokens(block);
    path.insert(path.end(), more.begin(), more.end());
    before = block;
  }
  ASSERT_GE(path.size(), found.tokens);
  ASSERT_TRUE(std::equal(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(found.tokens),
                         path.begin()));
}

}  // namespace ember
