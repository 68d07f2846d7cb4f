// The forest of blocks: parents before children, nothing lost, sums right, whatever the damage.
#include "tools/commands/look/block_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/prng.h"
#include "tests/tools/reader_of_records.h"
#include "tools/commands/look/block_filter.h"

namespace ember {
namespace {

BlockTree tree_of(RecordsReader& reader) {
  Result<BlockTree> tree = BlockTree::read(reader);
  EXPECT_TRUE(tree.ok());
  return std::move(tree).value();
}

std::vector<uint32_t> preorder(const BlockTree& tree, uint32_t from = kNoNode) {
  std::vector<uint32_t> order;
  tree.descend(from, [&order](uint32_t index, uint32_t) {
    order.push_back(index);
    return true;
  });
  return order;
}

TEST(BlockTreeTest, ParentsStandRightBeforeTheirChildren) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Prng prng(seed);
    RecordsReader reader;
    for (uint8_t i = 1; i <= 40; ++i) {
      // Number 0 is the root, and 200 a parent that is not there.
      const uint64_t parent = prng.below(i + 1u);
      reader.add(i, parent == i ? 200 : static_cast<uint8_t>(parent), parent == 0 ? 0 : 1);
    }
    reader.shuffle(prng);
    const BlockTree tree = tree_of(reader);
    const std::vector<uint32_t> order = preorder(tree);
    ASSERT_EQ(order.size(), 40u);
    ASSERT_EQ(std::set<uint32_t>(order.begin(), order.end()).size(), 40u);
    std::map<uint32_t, size_t> place;
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (size_t i = 0; i < order.size(); ++i) {
      const BlockNode& node = tree.node(order[i]);
      EXPECT_EQ(node.orphan, node.parent_hash == reader.hash(200));
      if (node.parent == kNoNode) continue;
      EXPECT_LT(place[node.parent], i);
      // The row after the parent is one of its children.
      EXPECT_EQ(tree.node(order[place[node.parent] + 1]).parent, node.parent);
    }
  }
}

TEST(BlockTreeTest, SumsOfRootsAreTheStores) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Prng prng(seed);
    RecordsReader reader;
    for (uint8_t i = 1; i <= 60; ++i) {
      reader.add(i, static_cast<uint8_t>(prng.below(i)), 0, 1 + prng.below(64));
    }
    const BlockTree tree = tree_of(reader);
    const std::vector<BlockTree::Sums> sums = tree.subtree_sums();
    BlockTree::Sums all;
    for (const uint32_t root : tree.roots()) all.add(sums[root]);
    EXPECT_EQ(all.blocks, 60u);
    EXPECT_EQ(all.tokens, reader.tokens());
    for (uint32_t i = 0; i < tree.nodes().size(); ++i) {
      EXPECT_EQ(preorder(tree, i).size(), sums[i].blocks);
    }
  }
}

TEST(BlockTreeTest, RecordsInACircleAreKeptOnce) {
  RecordsReader reader;
  reader.add(1, 2, 1);
  reader.add(2, 3, 1);
  reader.add(3, 1, 1);
  reader.add(4, 4, 1);
  reader.add(5, 2, 1);
  const BlockTree tree = tree_of(reader);
  EXPECT_EQ(preorder(tree).size(), 5u);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_LE(tree.path_to(i).size(), 5u);
}

TEST(BlockTreeTest, ABlockIsFoundByItsFirstDigits) {
  RecordsReader reader;
  reader.add(0x1a, 0, 0);
  reader.add(0x1b, 0, 0);
  reader.add(0x2a, 0, 0);
  const BlockTree tree = tree_of(reader);
  EXPECT_EQ(tree.find("1").size(), 2u);
  EXPECT_EQ(tree.find("2a").size(), 1u);
  EXPECT_EQ(tree.find("3").size(), 0u);
  EXPECT_EQ(tree.find(reader.hash(0x1b).hex()).size(), 1u);
  EXPECT_EQ(tree.find(reader.hash(0x1b).hex() + "0").size(), 0u);
  EXPECT_EQ(start_of(tree, "1").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(start_of(tree, "2").value(), tree.find("2")[0]);
  EXPECT_EQ(start_of(tree, "").value(), kNoNode);
}

TEST(BlockTreeTest, ReadingStopsWhenNobodyWaits) {
  RecordsReader reader;
  for (uint8_t i = 1; i <= 9; ++i) reader.add(i, 0, 0);
  const Result<BlockTree> tree =
      BlockTree::read(reader, [](uint64_t blocks) { return blocks < 3; });
  EXPECT_EQ(tree.error().code, ErrorCode::kCancelled);
}

TEST(BlockFilterTest, EachConditionLeavesOutWhatItSays) {
  RecordsReader reader;
  reader.add(1, 0, 0);
  reader.touch(1, {.last_use_unix_us = 1'000'000, .hits = 7});
  const BlockTree tree = tree_of(reader);
  const BlockNode& node = tree.node(0);
  const auto pass = [&](const BlockFilter& filter) {
    return passes(filter, tree, node, 3'000'000);
  };
  EXPECT_TRUE(pass({}));
  EXPECT_TRUE(pass({.scope = "shared"}));
  EXPECT_FALSE(pass({.scope = "acme"}));
  EXPECT_TRUE(pass({.tier = Tier::kDisk}));
  EXPECT_FALSE(pass({.tier = Tier::kHost}));
  EXPECT_TRUE(pass({.least_hits = 7}));
  EXPECT_FALSE(pass({.least_hits = 8}));
  EXPECT_TRUE(pass({.most_hits = 7}));
  EXPECT_FALSE(pass({.most_hits = 6}));
  EXPECT_TRUE(pass({.unused_us = 2'000'000}));
  EXPECT_FALSE(pass({.unused_us = 2'000'001}));
  EXPECT_TRUE(pass({.used_us = 2'000'000}));
  EXPECT_FALSE(pass({.used_us = 1'999'999}));
  EXPECT_FALSE(pass({.tails_only = true}));
  EXPECT_TRUE(pass({.blocks_only = true}));
  EXPECT_FALSE(pass({.pinned = true}));
  EXPECT_FALSE(pass({.damaged = true}));
  EXPECT_FALSE(pass({.unreachable = true}));
  const std::string name_space = tree.name_spaces()[0].hex();
  EXPECT_TRUE(pass({.name_space = name_space.substr(0, 4)}));
  EXPECT_FALSE(pass({.name_space = "f"}));
}

TEST(BlockFilterTest, WhatIsNotKnownToBeUnusedIsNotTakenForIt) {
  RecordsReader reader;
  reader.add(1, 0, 0);
  reader.touch(1, {.last_use_unix_us = 1'000'000, .hits = 7});
  reader.add(2, 1, 1, 10);  // tails: no use of theirs is written down
  reader.add(3, 0, 0, 10);
  const BlockTree tree = tree_of(reader);
  const auto pass = [&](const char* digits, const BlockFilter& filter) {
    return passes(filter, tree, tree.node(start_of(tree, digits).value()), 3'000'000);
  };
  EXPECT_TRUE(pass("02", {.unused_us = 2'000'000})) << "as long as the block that it hangs on";
  EXPECT_FALSE(pass("02", {.unused_us = 2'000'001}));
  EXPECT_TRUE(pass("02", {.used_us = 2'000'000}));
  EXPECT_FALSE(pass("03", {.unused_us = 1}));
  EXPECT_FALSE(pass("03", {.used_us = 1'000'000'000}));
}

TEST(BlockFilterTest, DigitsAreDigits) {
  EXPECT_TRUE(check_filter({.prefix = "0123456789abcdef"}).ok());
  EXPECT_FALSE(check_filter({.prefix = "xyz"}).ok());
  EXPECT_FALSE(check_filter({.name_space = "AB"}).ok());
  EXPECT_FALSE(check_filter({.prefix = std::string(33, '0')}).ok());
}

}  // namespace
}  // namespace ember
