// Radix index: what a tenant finds of its own, of `shared`, and never of another tenant.
#include <gtest/gtest.h>

#include <vector>

#include "prefix_index/radix_index.h"

namespace ember {
namespace {

using Tokens = std::vector<TokenId>;
using Blocks = std::vector<BlockId>;
constexpr uint32_t kSpan = 4;
constexpr uint64_t kBuild = 5;
constexpr ScopeId kAnna{1};
constexpr ScopeId kBen{7};  // numbers need not follow each other

class RadixIndexScopesTest : public ::testing::Test {
 protected:
  BlockId add(ScopeId scope, BlockId parent, const Tokens& tokens) {
    const BlockId block = index_.insert(scope, parent, tokens, BlockHash{}, kBuild, ++now_);
    index_.set_place(block, Tier::kDisk, 0);
    return block;
  }
  PrefixMatch match(ScopeId scope, const Tokens& tokens, size_t shared_blocks = 0) const {
    return index_.match(scope, tokens, tokens.size(), kBuild, shared_blocks);
  }
  void TearDown() override { index_.check_invariants(); }

  RadixIndex index_{kSpan};
  uint64_t now_ = 0;
};

TEST_F(RadixIndexScopesTest, WhatATenantHasNobodyElseFinds) {
  const BlockId block = add(kAnna, kNoBlock, {1, 2, 3, 4});
  EXPECT_EQ(match(kAnna, {1, 2, 3, 4}).blocks, Blocks{block});
  EXPECT_EQ(match(kAnna, {1, 2}).tokens, 2u) << "its own down to the token";
  for (ScopeId other : {kSharedScope, kBen, kNoScope}) {
    EXPECT_EQ(match(other, {1, 2, 3, 4}).tokens, 0u);
    EXPECT_EQ(index_.find_child(other, kNoBlock, Tokens{1, 2, 3, 4}), kNoBlock);
    EXPECT_TRUE(index_.children(other, kNoBlock).empty());
  }
}

TEST_F(RadixIndexScopesTest, EqualTokensOfTwoTenantsUnderOneSharedBlockAreTwoBlocks) {
  const BlockId prompt = add(kSharedScope, kNoBlock, {1, 2, 3, 4});
  const BlockId anna = add(kAnna, prompt, {5, 6, 7, 8});
  const BlockId ben = add(kBen, prompt, {5, 6, 7, 8});
  const BlockId shared = add(kSharedScope, prompt, {9, 9, 9, 9});
  EXPECT_NE(anna, ben);
  EXPECT_EQ(index_.entry(prompt).children, 3u);
  EXPECT_EQ(index_.entry(anna).parent, prompt);
  EXPECT_EQ(index_.entry(anna).position, 1u);
  EXPECT_EQ(match(kAnna, {1, 2, 3, 4, 5, 6, 7, 8}).blocks, (Blocks{prompt, anna}));
  EXPECT_EQ(match(kBen, {1, 2, 3, 4, 5, 6, 7, 8}).blocks, (Blocks{prompt, ben}));
  EXPECT_EQ(match(kBen, {1, 2, 3, 4, 9, 9, 9, 9}).blocks, (Blocks{prompt, shared}));
  EXPECT_EQ(match(kSharedScope, {1, 2, 3, 4, 5, 6, 7, 8}).blocks, Blocks{prompt});
}

TEST_F(RadixIndexScopesTest, TheLongestWayIsTakenWhereverItLeavesShared) {
  const BlockId first = add(kSharedScope, kNoBlock, {1, 1, 1, 1});
  const BlockId second = add(kSharedScope, first, {2, 2, 2, 2});
  const Tokens prompt = {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  EXPECT_EQ(match(kAnna, prompt).blocks, (Blocks{first, second}));
  // It went its own way earlier, and further.
  const BlockId own_second = add(kAnna, first, {2, 2, 2, 2});
  EXPECT_EQ(match(kAnna, prompt).blocks, (Blocks{first, second})) << "equal: what is shared";
  const BlockId own_third = add(kAnna, own_second, {3, 3, 3});
  EXPECT_EQ(match(kAnna, prompt).blocks, (Blocks{first, own_second, own_third}));
  EXPECT_EQ(match(kAnna, prompt).tokens, 11u);
  // Further still, from the root on.
  BlockId alone = add(kAnna, kNoBlock, {1, 1, 1, 1});
  alone = add(kAnna, add(kAnna, alone, {2, 2, 2, 2}), {3, 3, 3, 3});
  EXPECT_EQ(match(kAnna, prompt).tokens, 12u);
  EXPECT_EQ(match(kAnna, prompt).blocks.back(), alone);
  EXPECT_EQ(match(kAnna, prompt, 1).tokens, 11u) << "may not leave before the first block's end";
  EXPECT_EQ(match(kAnna, prompt, 2).tokens, 8u) << "nor before the second's";
}

// Else a tenant could find a published text one token at a time.
TEST_F(RadixIndexScopesTest, ATenantFindsSharedBlocksWholeOrNotAtAll) {
  const BlockId first = add(kSharedScope, kNoBlock, {1, 2, 3, 4});
  add(kSharedScope, first, {5, 6});
  EXPECT_EQ(match(kSharedScope, {1, 2, 3}).tokens, 3u);
  EXPECT_EQ(match(kAnna, {1, 2, 3}).tokens, 0u);
  EXPECT_EQ(match(kAnna, {1, 2, 3, 9}).tokens, 0u);
  EXPECT_EQ(match(kAnna, {1, 2, 3, 4, 5, 6}).tokens, 4u);
  const Tokens whole = {1, 2, 3, 4};
  EXPECT_EQ(index_.match(kAnna, whole, 3, kBuild).tokens, 3u) << "it has shown that it knows all";
}

TEST_F(RadixIndexScopesTest, ASharedBlockStaysWhileATenantsChildIsStored) {
  const BlockId prompt = add(kSharedScope, kNoBlock, {1, 2, 3, 4});
  const BlockId own = add(kAnna, prompt, {5, 6, 7, 8});
  const LeafLru& leaves = index_.evictable(Tier::kDisk);
  const auto anything = [](BlockId) { return true; };
  EXPECT_EQ(leaves.oldest(anything), own);
  EXPECT_EQ(leaves.size(), 1u);
  index_.clear_place(own, Tier::kDisk);
  index_.erase(own);
  EXPECT_EQ(leaves.oldest(anything), prompt);
}

TEST_F(RadixIndexScopesTest, SharedRunsSplitAndJoinUnderTenantsBlocks) {
  BlockId tip = kNoBlock;
  Blocks run;
  for (TokenId i = 0; i < 6; ++i) run.push_back(tip = add(kSharedScope, tip, Tokens(kSpan, i)));
  Tokens prompt;
  for (TokenId i = 0; i < 4; ++i) prompt.insert(prompt.end(), kSpan, i);
  const BlockId own = add(kAnna, run[3], {7, 7});
  const BlockId fork = add(kSharedScope, run[2], {8, 8, 8, 8});
  prompt.insert(prompt.end(), {7, 7});
  EXPECT_EQ(match(kAnna, prompt).blocks.back(), own);
  index_.clear_place(fork, Tier::kDisk);
  index_.erase(fork);
  EXPECT_EQ(match(kAnna, prompt).blocks.back(), own);
  EXPECT_EQ(match(kAnna, prompt).tokens, 18u);
}

TEST(RadixIndexScopesDeathTest, AChainGoesFromSharedToOneTenantOnceAndNeverBack) {
  RadixIndex index(kSpan);
  const Tokens tokens = {1, 2, 3, 4};
  const BlockId own = index.insert(kAnna, kNoBlock, tokens, BlockHash{}, kBuild, 1);
  EXPECT_DEATH(index.insert(kSharedScope, own, tokens, BlockHash{}, kBuild, 1), "stays");
  EXPECT_DEATH(index.insert(kBen, own, tokens, BlockHash{}, kBuild, 1), "stays");
  EXPECT_DEATH(index.insert(kNoScope, kNoBlock, tokens, BlockHash{}, kBuild, 1), "a scope");
}

}  // namespace
}  // namespace ember
