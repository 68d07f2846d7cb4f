// Epoch loss: the choice against a plain reference, over seeds.
#include "store/disk/epoch_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/store/disk/disk_store_testing.h"

namespace ember {
namespace {

std::vector<StoredBlock> random_forest(uint64_t seed) {
  Prng prng(seed);
  std::vector<StoredBlock> blocks;
  const size_t count = 1 + prng.below(60);
  for (size_t i = 0; i < count; ++i) {
    StoredBlock block;
    block.hash = made_hash(seed * 1000 + i);
    block.epoch = static_cast<uint32_t>(prng.below(6));  // 0: a hole
    block.stored_bytes = 1 + prng.below(5);
    if (i > 0 && prng.below(5) > 0) {
      const StoredBlock& parent = blocks[prng.below(i)];
      block.parent = parent.hash;
      block.position = parent.position + 1;
    } else {
      block.parent = made_hash(uint64_t{1} << 50);
    }
    blocks.push_back(block);
  }
  for (size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[prng.below(i)]);
  return blocks;
}

const StoredBlock* find(const std::vector<StoredBlock>& blocks, const BlockHash& hash) {
  const auto found = std::find_if(blocks.begin(), blocks.end(),
                                  [&](const StoredBlock& block) { return block.hash == hash; });
  return found == blocks.end() ? nullptr : &*found;
}

bool hangs_on(const std::vector<StoredBlock>& blocks, const StoredBlock& block, uint32_t epoch) {
  for (const StoredBlock* at = &block; at != nullptr; at = find(blocks, at->parent)) {
    if (at->epoch == epoch) return true;
  }
  return false;
}

TEST(EpochLossTest, TheLightestSubtreesGoFirstAsCountedPlainly) {
  const std::vector<uint32_t> epochs = {1, 2, 3, 4, 5};
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const std::vector<StoredBlock> blocks = random_forest(seed);
    uint32_t expected = 0;
    uint64_t fewest = 0;
    for (const uint32_t epoch : epochs) {
      uint64_t bytes = 0;
      for (const StoredBlock& block : blocks) {
        if (block.epoch != 0 && hangs_on(blocks, block, epoch)) bytes += block.stored_bytes;
      }
      if (expected == 0 || bytes <= fewest) {  // the newest on ties
        expected = epoch;
        fewest = bytes;
      }
    }
    ASSERT_EQ(epoch_to_lose(blocks, epochs), expected) << "seed " << seed;
  }
}

TEST(EpochLossTest, HolesStayJustWhereSomethingHangsBelowThem) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const std::vector<StoredBlock> blocks = random_forest(seed);
    const uint32_t epoch = 1 + static_cast<uint32_t>(seed % 5);
    std::set<BlockHash> expected;
    for (const StoredBlock& block : blocks) {
      if (block.epoch == 0 || block.epoch == epoch) continue;
      for (const StoredBlock* at = &block; at != nullptr; at = find(blocks, at->parent)) {
        if (at->epoch == 0 || at->epoch == epoch) expected.insert(at->hash);
      }
    }
    const std::unordered_set<BlockHash> holes = holes_after(blocks, epoch);
    ASSERT_EQ(std::set<BlockHash>(holes.begin(), holes.end()), expected) << "seed " << seed;
  }
}

TEST(EpochLossTest, ASystemPromptGoesLast) {
  // Epoch 1: the prompt that every conversation hangs on. It is the smallest, and the last to go.
  std::vector<StoredBlock> blocks = {{made_hash(1), made_hash(0), 0, 1, 10}};
  for (uint32_t i = 2; i < 5; ++i) {
    blocks.push_back({made_hash(i), made_hash(1), 1, i, 1000});
  }
  std::vector<uint32_t> epochs = {1, 2, 3, 4};
  std::vector<uint32_t> order;
  while (!epochs.empty()) {
    order.push_back(epoch_to_lose(blocks, epochs));
    std::erase(epochs, order.back());
    std::erase_if(blocks, [&](const StoredBlock& block) { return block.epoch == order.back(); });
  }
  EXPECT_EQ(order, (std::vector<uint32_t>{4, 3, 2, 1}));
}

}  // namespace
}  // namespace ember
