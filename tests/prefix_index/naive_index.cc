// Naive index: brute force over the list of paths.
#include "tests/prefix_index/naive_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ember {

BlockHash NaiveIndex::root_hash(int root) {
  BlockHash hash;
  hash.bytes[0] = static_cast<uint8_t>(root + 1);
  return hash;
}

bool NaiveIndex::is_parent(const NaiveBlock& parent, const NaiveBlock& child) const {
  return parent.root == child.root && parent.path.size() + child.token_count == child.path.size() &&
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

size_t NaiveIndex::match(int root, TokenSpan tokens, size_t limit, uint64_t build) const {
  const size_t length = std::min(tokens.size(), limit);
  size_t best = 0;
  for (const NaiveBlock& block : blocks_) {
    if (block.root != root || !whole_path_usable(block, build)) continue;
    size_t agree = 0;
    while (agree < std::min(length, block.path.size()) && tokens[agree] == block.path[agree]) {
      ++agree;
    }
    best = std::max(best, agree);
  }
  return best;
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
  const BlockHash root = root_hash(block.root);
  ASSERT_EQ(index.find_child(root, entry.parent, tokens), block.id);
  std::vector<BlockId> children;
  for (const NaiveBlock* child : children_of(block)) children.push_back(child->id);
  ASSERT_EQ(entry.children, children.size());
  ASSERT_EQ(index.children(root, block.id), children);
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
}

void NaiveIndex::expect_same_match(const RadixIndex& index, int root, TokenSpan tokens,
                                   size_t limit, uint64_t build) const {
  const PrefixMatch found = index.match(root_hash(root), tokens, limit, build);
  ASSERT_EQ(found.tokens, match(root, tokens, limit, build));
  ASSERT_EQ(found.blocks.size(), (found.tokens + span_ - 1) / span_);
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
