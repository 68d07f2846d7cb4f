// Which blocks go, and which stay for whose sake.
#include "tools/commands/change/removal_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "tests/tools/reader_of_records.h"
#include "tools/commands/change/gc_plan.h"

namespace ember {
namespace {

class RemovalPlanTest : public testing::Test {
 protected:
  // 1 -> 2 -> 3, 2 -> 4; 5 alone; 7 -> 8, whose parent 6 is not there.
  RemovalPlanTest() {
    reader_.add(1, 100, 0);
    reader_.add(2, 1, 1);
    reader_.add(3, 2, 2);
    reader_.add(4, 2, 2);
    reader_.add(5, 100, 0);
    reader_.add(7, 6, 4);
    reader_.add(8, 7, 5);
    for (const uint8_t number : std::vector<uint8_t>{1, 2, 3, 4, 5, 7, 8}) {
      reader_.touch(number, {.last_use_unix_us = int64_t{1000} - number, .hits = 0});
    }
  }
  BlockTree tree() {
    Result<BlockTree> tree = BlockTree::read(reader_);
    EXPECT_TRUE(tree.ok());
    return std::move(*tree);
  }
  static std::vector<int> numbers(const BlockTree& tree, const RemovalPlan& plan) {
    std::vector<int> found;
    for (const uint32_t index : plan.going) found.push_back(tree.node(index).hash.bytes[0]);
    return found;
  }
  static RemovalPlan plan(const BlockTree& tree, std::vector<int> wanted) {
    return plan_removal(tree, [&](uint32_t index) {
      return std::find(wanted.begin(), wanted.end(), tree.node(index).hash.bytes[0]) !=
             wanted.end();
    });
  }

  RecordsReader reader_;
};

TEST_F(RemovalPlanTest, ChildrenGoBeforeParentsAndNothingElseGoes) {
  const BlockTree blocks = tree();
  const RemovalPlan all = plan(blocks, {1, 2, 3, 4});
  EXPECT_EQ(numbers(blocks, all), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(all.sums.stored_bytes, 4 * 60u);
  EXPECT_EQ(all.stayed(), 0u);
}

TEST_F(RemovalPlanTest, AParentStaysForAChildThatStays) {
  const BlockTree blocks = tree();
  const RemovalPlan some = plan(blocks, {1, 2, 3, 5});
  EXPECT_EQ(numbers(blocks, some), (std::vector<int>{5, 3}));
  EXPECT_EQ(some.needed, 2u);
}

TEST_F(RemovalPlanTest, WhatNothingReachesIsFoundWithAllBelowIt) {
  const BlockTree blocks = tree();
  const std::vector<bool> lost = unreachable_nodes(blocks);
  const RemovalPlan going = plan_removal(blocks, [&lost](uint32_t index) { return lost[index]; });
  EXPECT_EQ(numbers(blocks, going), (std::vector<int>{8, 7}));
  for (const EraseItem& item : erase_items(blocks, going, true)) EXPECT_TRUE(item.unreachable);
}

TEST_F(RemovalPlanTest, TheOldestLeavesAreChosenUntilItIsEnough) {
  const BlockTree blocks = tree();
  std::vector<bool> chosen(blocks.nodes().size(), false);
  choose_oldest(blocks, 4 * 60, chosen);
  const RemovalPlan going =
      plan_removal(blocks, [&chosen](uint32_t index) { return chosen[index]; });
  std::vector<int> found = numbers(blocks, going);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<int>{4, 5, 7, 8}));
  std::vector<bool> all(blocks.nodes().size(), false);
  choose_oldest(blocks, UINT64_MAX, all);
  EXPECT_EQ(std::count(all.begin(), all.end(), true), 7);
}

TEST_F(RemovalPlanTest, TailsGoWithTheirBlocksAndMakeNoRoom) {
  for (const auto& [number, parent, position] :
       {std::tuple(20, 5, 1u), std::tuple(21, 1, 1u), std::tuple(22, 0, 0u)}) {
    BlockRecord tail;
    tail.hash = RecordsReader::hash(static_cast<uint8_t>(number));
    if (parent != 0) tail.parent = RecordsReader::hash(static_cast<uint8_t>(parent));
    tail.position = position;
    tail.scope = "shared";
    tail.tail = true;
    tail.tokens.resize(9);
    tail.groups.push_back({.raw_bytes = 100, .stored_bytes = 600});
    reader_.add(std::move(tail));
  }
  const BlockTree blocks = tree();
  std::vector<bool> chosen(blocks.nodes().size(), false);
  choose_oldest(blocks, 3 * 60, chosen);
  const RemovalPlan going =
      plan_removal(blocks, [&chosen](uint32_t index) { return chosen[index]; });
  std::vector<int> found = numbers(blocks, going);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<int>{5, 7, 8, 20}));
  EXPECT_EQ(going.stayed(), 0u);
}

TEST_F(RemovalPlanTest, EpochsAreRewrittenWhereMuchIsDeadOrTheLimitAsksForIt) {
  const BlockTree blocks = tree();
  FactsByHash facts;
  for (const BlockNode& node : blocks.nodes()) facts[node.hash] = {1, 7};
  facts[RecordsReader::hash(5)] = {2, 7};
  facts[RecordsReader::hash(3)].numerics_build = 8;
  std::vector<bool> foreign = foreign_nodes(blocks, facts);
  EXPECT_EQ(std::count(foreign.begin(), foreign.end(), true), 1);
  const std::vector<DiskTier::EpochUse> epochs = {
      {.epoch = 1, .bytes = 1000, .live_bytes = 360, .live_blocks = 6},
      {.epoch = 2, .bytes = 100, .live_bytes = 60, .live_blocks = 1},
      {.epoch = 3, .bytes = 50, .live_bytes = 50, .live_blocks = 1}};
  const auto some = choose_epochs(epochs, blocks, plan(blocks, {3}), facts, 0.5, UINT64_MAX);
  ASSERT_EQ(some.size(), 1u);
  EXPECT_EQ(some[0].epoch, 1u);
  EXPECT_EQ(some[0].dead_bytes, 700u);
  EXPECT_EQ(choose_epochs(epochs, blocks, plan(blocks, {5}), facts, 0.9, UINT64_MAX).size(), 1u);
  EXPECT_EQ(choose_epochs(epochs, blocks, plan(blocks, {}), facts, 0.9, 400).size(), 2u);
}

}  // namespace
}  // namespace ember
