// Block table: lookup by hash under collisions and growth, and the order of eviction.
#include "prefix_index/block_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace ember {
namespace {

BlockHash hash_of(uint32_t number) {
  BlockHash hash;
  std::memcpy(hash.bytes.data(), &number, sizeof number);
  return hash;
}

BlockEntry entry_of(uint32_t number, BlockId parent = kNoBlock) {
  BlockEntry entry;
  entry.hash = hash_of(number);
  entry.parent = parent;
  entry.token_count = 1;
  entry.last_use = number;
  return entry;
}


bool always(BlockId) { return true; }

TEST(BlockTableTest, EveryHashIsFoundAfterGrowthAndRemoval) {
  BlockTable table;
  std::vector<BlockId> blocks;
  for (uint32_t i = 0; i < 1000; ++i) blocks.push_back(table.add(entry_of(i), kSharedScope));
  for (uint32_t i = 0; i < 1000; i += 2) table.remove(blocks[i]);
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(table.find(hash_of(i)), i % 2 == 0 ? kNoBlock : blocks[i]);
  }
  EXPECT_EQ(table.size(), 500u);
}

TEST(BlockTableTest, OneOfTwoBlocksOfAHashStaysWhenTheOtherGoes) {
  BlockTable table;
  const BlockId a = table.add(entry_of(7), kSharedScope);
  const BlockId b = table.add(entry_of(7), kSharedScope);
  ASSERT_NE(a, b);
  table.remove(b);
  EXPECT_EQ(table.find(hash_of(7)), a);
  table.remove(a);
  EXPECT_EQ(table.find(hash_of(7)), kNoBlock);
}

TEST(BlockTableTest, NumbersAreUsedAgain) {
  BlockTable table;
  const BlockId a = table.add(entry_of(1), kSharedScope);
  table.remove(a);
  EXPECT_EQ(table.add(entry_of(2), kSharedScope), a);
  EXPECT_EQ(table.entry(a).hash, hash_of(2));
}

TEST(BlockTableTest, TheOldestLeafGoesFirstAndThenItsParent) {
  BlockTable table;
  const BlockId parent = table.add(entry_of(1), kSharedScope);
  const BlockId child = table.add(entry_of(3, parent), kSharedScope);
  const BlockId other = table.add(entry_of(2), kSharedScope);
  for (BlockId block : {parent, child, other}) table.set_place(block, Tier::kDisk, 0);
  std::vector<BlockId> gone;
  while (const auto block = table.evictable(Tier::kDisk).oldest(always)) {
    table.clear_place(*block, Tier::kDisk);
    gone.push_back(*block);
  }
  EXPECT_EQ(gone, (std::vector<BlockId>{other, child, parent}));
}

TEST(BlockTableTest, AUsedBlockGoesLater) {
  BlockTable table;
  const BlockId a = table.add(entry_of(1), kSharedScope);
  const BlockId b = table.add(entry_of(2), kSharedScope);
  for (BlockId block : {a, b}) table.set_place(block, Tier::kHost, 0);
  table.touch(a, 9, true);
  EXPECT_EQ(table.evictable(Tier::kHost).oldest(always), b);
  table.touch(b, 8, false);
  EXPECT_EQ(table.evictable(Tier::kHost).oldest(always), b);
  table.touch(a, 3, true);  // a counter that fell changes nothing but the hits
  EXPECT_EQ(table.entry(a).last_use, 9u);
  EXPECT_EQ(table.entry(a).hits, 2u);
  table.check_invariants(std::vector<BlockId>{a, b});
}

TEST(BlockTableTest, ABlockThatMayNotGoIsPassedOver) {
  BlockTable table;
  const BlockId leased = table.add(entry_of(1), kSharedScope);
  const BlockId idle = table.add(entry_of(2), kSharedScope);
  for (BlockId block : {leased, idle}) table.set_place(block, Tier::kDevice, 0);
  const auto may_go = [leased](BlockId block) { return block != leased; };
  EXPECT_EQ(table.evictable(Tier::kDevice).oldest(may_go), idle);
}

TEST(BlockTableTest, AChildThatIsLowerDownLetsItsParentLeaveAboveUnlessItIsTheLastCopy) {
  BlockTable table;
  const BlockId parent = table.add(entry_of(1), kSharedScope);
  const BlockId child = table.add(entry_of(2, parent), kSharedScope);
  table.set_place(parent, Tier::kHost, 0);
  table.set_place(parent, Tier::kDisk, 0);
  table.set_place(child, Tier::kHost, 1);
  const LeafLru& host = table.evictable(Tier::kHost);
  EXPECT_FALSE(host.contains(1, parent)) << "the child is in host only";
  table.set_place(child, Tier::kDisk, 1);
  EXPECT_TRUE(host.contains(1, parent)) << "the child is on disk, too";
  EXPECT_FALSE(table.evictable(Tier::kDisk).contains(1, parent));
  table.clear_place(parent, Tier::kDisk);
  EXPECT_FALSE(host.contains(1, parent)) << "host holds the last copy, and the child needs it";
  table.clear_place(child, Tier::kHost);
  table.clear_place(child, Tier::kDisk);
  EXPECT_TRUE(host.contains(1, parent));
}

TEST(BlockTableTest, WhatIsStoredBelowAHoleKeepsTheBlocksAboveIt) {
  BlockTable table;
  const BlockId top = table.add(entry_of(1), kSharedScope);
  const BlockId hole = table.add(entry_of(2, top), kSharedScope);
  const BlockId below = table.add(entry_of(3, hole), kSharedScope);
  for (BlockId block : {top, hole, below}) table.set_place(block, Tier::kDisk, 0);
  table.set_damaged(hole, true);
  table.clear_place(hole, Tier::kDisk);
  const LeafLru& disk = table.evictable(Tier::kDisk);
  EXPECT_FALSE(disk.contains(1, top)) << "healing the hole must find its parent";
  EXPECT_TRUE(disk.contains(3, below));
  table.clear_place(below, Tier::kDisk);
  EXPECT_TRUE(disk.contains(1, top));
}

TEST(BlockTableTest, AMovedPlaceKeepsItsCount) {
  BlockTable table;
  const BlockId block = table.add(entry_of(1), kSharedScope);
  table.set_place(block, Tier::kDisk, 4);
  table.set_place(block, Tier::kDisk, 5);
  EXPECT_EQ(table.count(Tier::kDisk), 1u);
  EXPECT_EQ(table.entry(block).place[static_cast<size_t>(Tier::kDisk)], 5);
  table.clear_place(block, Tier::kDisk);
  table.clear_place(block, Tier::kDisk);
  EXPECT_EQ(table.count(Tier::kDisk), 0u);
}

TEST(BlockTableDeathTest, WhatIsStillNeededIsNotRemoved) {
  BlockTable table;
  const BlockId parent = table.add(entry_of(1), kSharedScope);
  const BlockId child = table.add(entry_of(2, parent), kSharedScope);
  table.set_place(child, Tier::kDisk, 0);
  EXPECT_DEATH(table.remove(parent), "children");
  EXPECT_DEATH(table.remove(child), "in a tier");
  EXPECT_DEATH(table.entry(BlockId{99}), "no such block");
}

}  // namespace
}  // namespace ember
