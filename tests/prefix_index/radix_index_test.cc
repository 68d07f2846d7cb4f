// Radix index: the facts a reader wants to know, one by one.
#include "prefix_index/radix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/prng.h"

namespace ember {
namespace {

using Tokens = std::vector<TokenId>;
constexpr uint32_t kSpan = 4;
constexpr uint64_t kBuild = 5;
constexpr ScopeId kScope = kSharedScope;

BlockHash hash_of(uint64_t number) {
  BlockHash hash;
  std::memcpy(hash.bytes.data(), &number, sizeof number);
  return hash;
}

class RadixIndexTest : public ::testing::Test {
 protected:
  // Inserts a block and puts it on disk.
  BlockId add(BlockId parent, const Tokens& tokens, uint64_t hash = 1) {
    const BlockId block = index_.insert(kScope, parent, tokens, hash_of(hash), kBuild, ++now_);
    index_.set_place(block, Tier::kDisk, 0);
    return block;
  }
  PrefixMatch match(const Tokens& tokens) const {
    return index_.match(kScope, tokens, tokens.size(), kBuild);
  }
  void TearDown() override { index_.check_invariants(); }

  RadixIndex index_{kSpan};
  uint64_t now_ = 0;
};

TEST_F(RadixIndexTest, AnEmptyIndexKnowsNothing) {
  EXPECT_EQ(match({1, 2, 3}).tokens, 0u);
  EXPECT_EQ(index_.find(hash_of(1)), kNoBlock);
  EXPECT_TRUE(index_.all_blocks().empty());
  EXPECT_TRUE(index_.children(kScope, kNoBlock).empty());
}

TEST_F(RadixIndexTest, AFullBlockIsUsedAsFarAsItAgrees) {
  const BlockId block = add(kNoBlock, {1, 2, 3, 4});
  const PrefixMatch found = match({1, 2, 3, 9});
  EXPECT_EQ(found.tokens, 3u);
  EXPECT_EQ(found.blocks, std::vector<BlockId>{block});
}

TEST_F(RadixIndexTest, TheLimitCutsInsideABlock) {
  add(add(kNoBlock, {1, 2, 3, 4}), {5, 6, 7, 8});
  const Tokens prompt = {1, 2, 3, 4, 5, 6, 7, 8};
  const PrefixMatch found = index_.match(kScope, prompt, 7, kBuild);
  EXPECT_EQ(found.tokens, 7u);
  EXPECT_EQ(found.blocks.size(), 2u);
  EXPECT_EQ(index_.match(kScope, prompt, 4, kBuild).blocks.size(), 1u);
  EXPECT_EQ(index_.match(kScope, prompt, 0, kBuild).tokens, 0u);
}

TEST_F(RadixIndexTest, ATailGoesFurtherThanABlockThatAgreesLess) {
  const BlockId first = add(kNoBlock, {1, 2, 3, 4});
  add(first, {5, 6, 9, 9});
  const BlockId tail = add(first, {5, 6, 7});
  const PrefixMatch found = match({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(found.tokens, 7u);
  EXPECT_EQ(found.blocks, (std::vector<BlockId>{first, tail}));
}

TEST_F(RadixIndexTest, OfTwoThatAgreeEquallyTheWholeTailIsTaken) {
  add(kNoBlock, {5, 6, 9, 9});
  const BlockId tail = add(kNoBlock, {5, 6});
  EXPECT_EQ(match({5, 6, 7}).blocks, std::vector<BlockId>{tail});
}

TEST_F(RadixIndexTest, AnUnusableBlockStopsTheWayButASiblingMayAgreeInPart) {
  const BlockId first = add(kNoBlock, {1, 2, 3, 4});
  const BlockId next = add(first, {5, 6, 7, 8});
  const BlockId tail = add(first, {5, 6});
  const BlockId deep = add(next, {1, 1, 1, 1});
  const Tokens prompt = {1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 1, 1};
  EXPECT_EQ(match(prompt).blocks.back(), deep);

  index_.set_damaged(next, true);
  EXPECT_EQ(match(prompt).tokens, 6u);
  EXPECT_EQ(match(prompt).blocks.back(), tail);
  index_.set_damaged(next, false);
  index_.clear_place(next, Tier::kDisk);
  EXPECT_EQ(match(prompt).tokens, 6u);
  index_.set_place(next, Tier::kHost, 0);
  index_.set_numerics_build(next, kBuild + 1);
  EXPECT_EQ(match(prompt).tokens, 6u);
  EXPECT_EQ(index_.match(kScope, prompt, prompt.size(), 0).tokens, 12u) << "any build will do";
  index_.clear_place(tail, Tier::kDisk);
  EXPECT_EQ(match(prompt).tokens, 4u);
}

TEST_F(RadixIndexTest, TheTokensDecideWhereHashesAreForged) {
  // Two prompts under one hash, as an attacker would make them: each finds its own block alone.
  const BlockId mine = add(kNoBlock, {1, 2, 3, 4}, 7);
  const BlockId theirs = add(kNoBlock, {6, 2, 3, 4}, 7);
  ASSERT_NE(mine, theirs);
  EXPECT_EQ(index_.entry(mine).hash, index_.entry(theirs).hash);
  EXPECT_EQ(match({1, 2, 3, 4}).blocks, std::vector<BlockId>{mine});
  EXPECT_EQ(match({6, 2, 3, 4}).blocks, std::vector<BlockId>{theirs});
  EXPECT_EQ(match({9, 2, 3, 4}).tokens, 0u);
  EXPECT_EQ(index_.find_child(kScope, kNoBlock, Tokens{6, 2, 3, 4}), theirs);
  // And their children stay apart.
  const BlockId mine_next = add(mine, {5, 5, 5, 5}, 8);
  const BlockId theirs_next = add(theirs, {5, 5, 5, 5}, 8);
  ASSERT_NE(mine_next, theirs_next);
  EXPECT_EQ(match({1, 2, 3, 4, 5, 5, 5, 5}).blocks.back(), mine_next);
}

TEST_F(RadixIndexTest, AnEntryThatExistsIsReturnedUnchanged) {
  const BlockId block = add(kNoBlock, {1, 2, 3, 4});
  index_.set_damaged(block, true);
  const BlockEntry before = index_.entry(block);
  const BlockId again =
      index_.insert(kScope, kNoBlock, Tokens{1, 2, 3, 4}, hash_of(9), kBuild + 1, now_ + 9);
  EXPECT_EQ(again, block);
  EXPECT_EQ(index_.entry(block).hash, before.hash);
  EXPECT_EQ(index_.entry(block).numerics_build, kBuild);
  EXPECT_EQ(index_.entry(block).last_use, before.last_use);
  EXPECT_TRUE(index_.entry(block).damaged);
}

TEST_F(RadixIndexTest, SplitAndJoinKeepNumbersTokensAndState) {
  std::vector<BlockId> chain;
  for (TokenId i = 0; i < 10; ++i) {
    chain.push_back(add(chain.empty() ? kNoBlock : chain.back(), {i, i, i, i}));
  }
  index_.set_place(chain[2], Tier::kHost, 42);
  index_.set_damaged(chain[7], true);
  index_.touch(chain[8], 100, true);
  std::vector<BlockEntry> before;
  for (BlockId block : chain) before.push_back(index_.entry(block));
  const auto expect_as_before = [&](BlockId branched) {
    for (size_t i = 0; i < chain.size(); ++i) {
      const BlockEntry& entry = index_.entry(chain[i]);
      const auto t = static_cast<TokenId>(i);
      EXPECT_EQ(index_.tokens(chain[i]), (Tokens{t, t, t, t}));
      EXPECT_EQ(entry.hash, before[i].hash);
      EXPECT_EQ(entry.place, before[i].place);
      EXPECT_EQ(entry.damaged, before[i].damaged);
      EXPECT_EQ(entry.last_use, before[i].last_use);
      EXPECT_EQ(entry.hits, before[i].hits);
      EXPECT_EQ(entry.position, i);
      EXPECT_EQ(entry.parent, i == 0 ? kNoBlock : chain[i - 1]);
      EXPECT_EQ(entry.children, before[i].children + (chain[i] == branched ? 1u : 0u));
    }
    index_.check_invariants();
  };
  const BlockId fork = index_.insert(kScope, chain[4], Tokens{9, 9}, hash_of(2), kBuild, 200);
  expect_as_before(chain[4]);
  EXPECT_EQ(index_.children(kScope, chain[4]), (std::vector<BlockId>{chain[5], fork}));
  index_.erase(fork);
  expect_as_before(kNoBlock);
  EXPECT_EQ(index_.children(kScope, chain[4]), std::vector<BlockId>{chain[5]});
}

TEST_F(RadixIndexTest, ChildrenAreInTokenOrder) {
  const BlockId first = add(kNoBlock, {1, 2, 3, 4});
  const BlockId c = add(first, {300, 1, 1, 1});
  const BlockId a = add(first, {2, 2, 2, 2});
  const BlockId b = add(first, {2, 2, 2, 3});
  const BlockId tail = add(first, {2, 2});
  EXPECT_EQ(index_.children(kScope, first), (std::vector<BlockId>{tail, a, b, c}));
  EXPECT_EQ(index_.children(kScope, kNoBlock), std::vector<BlockId>{first});
}

TEST_F(RadixIndexTest, TheBestOfManyBranchesIsFound) {
  const BlockId first = add(kNoBlock, {1, 2, 3, 4});
  Prng random(3);
  std::vector<Tokens> all;
  for (int i = 0; i < 2000; ++i) {
    Tokens tokens(kSpan);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random.below(12));
    add(first, tokens);
    all.push_back(tokens);
  }
  for (int i = 0; i < 500; ++i) {
    Tokens prompt = {1, 2, 3, 4};
    for (uint32_t t = 0; t < kSpan; ++t) prompt.push_back(static_cast<TokenId>(random.below(13)));
    size_t best = 0;
    for (const Tokens& tokens : all) {
      size_t agree = 0;
      while (agree < kSpan && tokens[agree] == prompt[kSpan + agree]) ++agree;
      best = std::max(best, agree);
    }
    ASSERT_EQ(match(prompt).tokens, kSpan + best);
  }
}

TEST_F(RadixIndexTest, AChainOfAHundredThousandBlocksIsWalkedSplitAndTakenDown) {
  constexpr size_t kBlocks = 100'000;
  Tokens prompt;
  BlockId last = kNoBlock;
  std::vector<BlockId> chain;
  for (size_t i = 0; i < kBlocks; ++i) {
    const auto t = static_cast<TokenId>(i);
    const Tokens tokens = {t, t, t, 1};
    last = add(last, tokens, i);
    chain.push_back(last);
    prompt.insert(prompt.end(), tokens.begin(), tokens.end());
  }
  EXPECT_EQ(match(prompt).tokens, prompt.size());
  // A branch at every tenth block makes the tree deep in nodes, too.
  std::vector<BlockId> forks;
  for (size_t i = kBlocks - 10; i > 0; i -= 10)
    forks.push_back(add(chain[i], {-1, -1}, kBlocks + i));
  EXPECT_EQ(match(prompt).tokens, prompt.size());
  EXPECT_EQ(index_.all_blocks().size(), kBlocks + forks.size());
  index_.check_invariants();
  size_t gone = 0;
  while (const auto leaf = index_.evictable(Tier::kDisk).oldest([](BlockId) { return true; })) {
    index_.clear_place(*leaf, Tier::kDisk);
    index_.erase(*leaf);
    ++gone;
  }
  EXPECT_EQ(gone, kBlocks + forks.size());
  EXPECT_EQ(index_.size(), 0u);
}

TEST_F(RadixIndexTest, AHoleAtTheEndOfALongHoleyChainIsNoticedAtTheTop) {
  // Only the first and the last block are stored; all between are holes.
  std::vector<BlockId> chain = {add(kNoBlock, {0, 0, 0, 0})};
  for (TokenId i = 1; i < 1000; ++i) {
    chain.push_back(index_.insert(kScope, chain.back(), Tokens{i, 0, 0, 0}, hash_of(1), kBuild, 1));
  }
  const LeafLru& disk = index_.evictable(Tier::kDisk);
  EXPECT_TRUE(disk.contains(1, chain.front()));
  index_.set_place(chain.back(), Tier::kDisk, 0);
  EXPECT_FALSE(disk.contains(1, chain.front()));
  index_.clear_place(chain.back(), Tier::kDisk);
  EXPECT_TRUE(disk.contains(1, chain.front()));
}

// One chain, and as many chains as there are blocks under one: nearly the same bytes a block.
TEST_F(RadixIndexTest, MemoryIsThatOfTokensAndEntriesWhateverTheShape) {
  constexpr size_t kBlocks = 10'000;
  const size_t tokens = kBlocks * 64 * sizeof(TokenId);
  const auto held = [&](bool one_chain) {
    RadixIndex index(64);
    const size_t empty = index.memory_bytes();
    BlockId before = kNoBlock;
    for (size_t i = 0; i < kBlocks; ++i) {
      const BlockId block = index.insert(kScope, before, Tokens(64, static_cast<TokenId>(i)),
                                         hash_of(i), kBuild, i);
      if (one_chain || i == 0) before = block;
    }
    index.check_invariants();
    return index.memory_bytes() - empty;
  };
  EXPECT_GT(held(true), tokens + kBlocks * sizeof(BlockEntry));
  EXPECT_LT(held(true), tokens + kBlocks * 112);
  EXPECT_LT(held(false), tokens + kBlocks * 120);
}

TEST_F(RadixIndexTest, ErasingGivesTheTokensBack) {
  constexpr TokenId kBlocks = 4000;
  std::vector<BlockId> chain;
  for (TokenId i = 0; i < kBlocks; ++i) {
    const BlockId before = chain.empty() ? kNoBlock : chain.back();
    const BlockHash hash = hash_of(static_cast<uint64_t>(i));
    chain.push_back(index_.insert(kScope, before, Tokens{i, i, i, i}, hash, kBuild, 1));
  }
  const size_t full = index_.memory_bytes();
  for (; !chain.empty(); chain.pop_back()) index_.erase(chain.back());
  EXPECT_LE(index_.memory_bytes() + kBlocks * 4 * sizeof(TokenId), full + (32u << 10));
}

TEST_F(RadixIndexTest, ABlockInNoTierBetweenOthersIsCounted) {
  const BlockId above = add(kNoBlock, {1, 2, 3, 4}, 1);
  const BlockId below = add(above, {5, 6, 7, 8}, 2);
  EXPECT_EQ(index_.gaps(), 0u);  // both are on the disk
  index_.clear_place(below, Tier::kDisk);
  EXPECT_EQ(index_.gaps(), 0u) << "nothing hangs on it";
  index_.set_place(below, Tier::kHost, 1);
  index_.clear_place(above, Tier::kDisk);
  EXPECT_EQ(index_.gaps(), 1u);
  index_.set_damaged(above, true);
  EXPECT_EQ(index_.gaps(), 0u) << "a hole is known";
  index_.set_damaged(above, false);
  index_.clear_place(below, Tier::kHost);
  EXPECT_EQ(index_.gaps(), 1u);
  index_.erase(below);
  EXPECT_EQ(index_.gaps(), 0u);
}

TEST(RadixIndexDeathTest, MisuseAborts) {
  RadixIndex index(kSpan);
  const BlockId full = index.insert(kScope, kNoBlock, Tokens{1, 2, 3, 4}, hash_of(1), 0, 1);
  const BlockId tail = index.insert(kScope, full, Tokens{1}, hash_of(2), 0, 1);
  EXPECT_DEATH(index.insert(kScope, tail, Tokens{1}, hash_of(3), 0, 1), "a parent is a full block");
  EXPECT_DEATH(index.insert(kScope, full, Tokens{}, hash_of(3), 0, 1), "1 to span tokens");
  EXPECT_DEATH(index.insert(kScope, full, Tokens(5, 1), hash_of(3), 0, 1), "1 to span tokens");
  EXPECT_DEATH(index.erase(full), "leaf");
  EXPECT_DEATH(index.set_place(full, Tier::kDisk, -1), "not negative");
  EXPECT_DEATH(RadixIndex(0), "at least one token");
}

}  // namespace
}  // namespace ember
