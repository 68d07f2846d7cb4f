// The order of eviction and the shadows, each beside a plain one that is obviously right.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/prng.h"
#include "prefix_index/duel.h"
#include "prefix_index/eviction.h"
#include "tests/prefix_index/plain_shadows.h"

namespace ember {
namespace {

TEST(LeafLruTest, HeapAgreesWithASortedSet) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    std::map<BlockId, EvictionRank> ranks;
    const auto rank_of = [&](BlockId block) {
      const auto found = ranks.find(block);
      return found == ranks.end() ? EvictionRank::kUnheld : found->second;
    };
    LeafLru heap;
    heap.set_rank_source(rank_of);
    using Key = std::tuple<EvictionRank, uint64_t, BlockId>;
    std::set<Key> sorted;
    std::map<BlockId, Key> members;
    const auto set_rank = [&](BlockId block, EvictionRank rank) {
      ranks[block] = rank;
      if (!members.contains(block)) return;
      Key& key = members.at(block);
      sorted.erase(key);
      std::get<0>(key) = rank;
      sorted.insert(key);
    };
    for (int step = 0; step < 2000; ++step) {
      const BlockId block{static_cast<uint32_t>(prng.below(100))};
      const uint64_t use = prng.below(50);
      switch (prng.below(5)) {
        case 0: case 1:
          if (members.contains(block)) break;
          heap.add(use, block);
          members[block] = {rank_of(block), use, block};
          sorted.insert(members[block]);
          break;
        case 2:
          if (!members.contains(block)) break;
          heap.remove(std::get<1>(members[block]), block);
          sorted.erase(members[block]);
          members.erase(block);
          break;
        case 3:
          set_rank(block, static_cast<EvictionRank>(prng.below(6)));
          heap.rerank(block);
          break;
        default:
          if (prng.below(20) > 0) break;
          for (uint32_t i = 0; i < 100; i += 3) {
            set_rank(BlockId{i}, static_cast<EvictionRank>(prng.below(6)));
          }
          heap.rerank_all();
      }
      ASSERT_EQ(heap.size(), sorted.size());
      ASSERT_EQ(heap.contains(use, block),
                members.contains(block) && std::get<1>(members[block]) == use);
      const uint32_t odd = static_cast<uint32_t>(prng.below(4));
      const auto may_go = [&](BlockId b) { return static_cast<uint32_t>(b) % 4 >= odd; };
      const auto expected = std::find_if(sorted.begin(), sorted.end(), [&](const Key& key) {
        return may_go(std::get<2>(key));
      });
      const std::optional<BlockId> found = heap.oldest(may_go);
      ASSERT_EQ(found.has_value(), expected != sorted.end());
      if (found) {
        ASSERT_EQ(*found, std::get<2>(*expected));
      }
    }
  }
}

// Chains of a random tree: an id follows from the ids before it.
std::vector<ShadowId> chain_of(Prng& prng, size_t longest) {
  std::vector<ShadowId> chain;
  uint64_t id = 1 + prng.below(3);
  for (size_t length = 1 + prng.below(longest); chain.size() < length;) {
    chain.push_back(mix64(id));
    const uint64_t branch = prng.below(4) == 0 ? prng.below(6) : 0;
    id = mix64(id * 8 + branch);
  }
  return chain;
}

TEST(LeafLruShadowTest, AgreesWithThePlainOne) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Prng prng(seed);
    const size_t capacity = 1 + prng.below(60);
    LeafLruShadow shadow(capacity);
    PlainLeafLru plain{capacity};
    for (int i = 0; i < 300; ++i) {
      const std::vector<ShadowId> chain = chain_of(prng, 20);
      std::set<ShadowId> before;
      for (const auto& [id, block] : plain.blocks) before.insert(id);
      std::vector<ShadowId> changed;
      ASSERT_EQ(shadow.request(chain, &changed), plain.request(chain));
      ASSERT_EQ(shadow.size(), plain.blocks.size());
      for (const auto& [id, block] : plain.blocks) ASSERT_TRUE(shadow.holds(id));
      for (ShadowId id : before) {
        const bool told = std::find(changed.begin(), changed.end(), id) != changed.end();
        ASSERT_TRUE(told || plain.blocks.contains(id)) << "one that went is told";
      }
    }
  }
}

TEST(S3FifoShadowTest, AgreesWithThePlainOne) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Prng prng(seed);
    const size_t capacity = 2 + prng.below(60);
    S3FifoShadow shadow(capacity);
    PlainS3Fifo plain{capacity};
    for (int i = 0; i < 300; ++i) {
      const std::vector<ShadowId> chain = chain_of(prng, 20);
      ASSERT_EQ(shadow.request(chain, nullptr), plain.request(chain));
      ASSERT_EQ(shadow.size(), plain.count.size());
      ASSERT_EQ(shadow.ghosts(), plain.ghost.size());
      for (const auto& [id, count] : plain.count) ASSERT_TRUE(shadow.holds(id));
    }
  }
}

TEST(DuelTest, TheLeadChangesOnlyForOnePerCent) {
  // A loop slightly longer than the capacity: LRU hits nothing, S3-FIFO keeps a part of it.
  Duel duel(EvictionPolicy::kAuto, 20);
  EXPECT_EQ(duel.leader(), EvictionPolicy::kLeafLru);
  std::vector<ShadowId> loop;
  for (uint64_t i = 0; i < 30; ++i) loop.push_back(mix64(i));
  bool told = false;
  for (int round = 0; round < 50; ++round) {
    for (ShadowId block : loop) told = duel.request(std::span(&block, 1)).leader_changed || told;
  }
  EXPECT_EQ(duel.leader(), EvictionPolicy::kS3Fifo);
  EXPECT_TRUE(told);
  EXPECT_EQ(duel.switches(), 1u);
  EXPECT_GT(duel.scores().s3_fifo, duel.scores().leaf_lru);
}

TEST(DuelTest, ScoresAndMembersOutliveAReopening) {
  Duel duel(EvictionPolicy::kAuto, 20);
  duel.recall_scores({.leaf_lru = 100, .s3_fifo = 120}, EvictionPolicy::kS3Fifo);
  EXPECT_EQ(duel.leader(), EvictionPolicy::kS3Fifo);
  duel.recall(5, true);
  duel.recall(6, false);
  EXPECT_TRUE(duel.holds(5));
  EXPECT_TRUE(duel.holds(6));

  // Recalled as the latest use first, a full shadow lets the first use go first.
  LeafLruShadow shadow(3);
  for (const ShadowId block : std::vector<ShadowId>{3, 2, 1, 0}) shadow.recall(block);
  EXPECT_FALSE(shadow.holds(0)) << "there was no room for it any more";
  shadow.request(std::vector<ShadowId>{9}, nullptr);
  EXPECT_FALSE(shadow.holds(1));
  EXPECT_TRUE(shadow.holds(2) && shadow.holds(3) && shadow.holds(9));
}

// A duel that was written down and recalled goes on as if nothing had been.
TEST(DuelTest, WhatIsRecalledGoesOnAsBefore) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    const size_t capacity = 2 + prng.below(60);
    Duel duel(EvictionPolicy::kAuto, capacity);
    for (int i = 0; i < 200; ++i) duel.request(chain_of(prng, 20));
    std::vector<ShadowMark> marks;
    duel.begin_walk();
    while (!duel.walk(7, marks)) {
    }
    Duel recalled(EvictionPolicy::kAuto, capacity);
    recalled.recall_scores(duel.scores(), duel.leader());
    for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) recalled.recall(*mark);
    for (int i = 0; i < 200; ++i) {
      const std::vector<ShadowId> chain = chain_of(prng, 20);
      const Duel::Change expected = duel.request(chain);
      const Duel::Change found = recalled.request(chain);
      ASSERT_EQ(found.leader_changed, expected.leader_changed);
      ASSERT_TRUE(std::equal(found.ids.begin(), found.ids.end(), expected.ids.begin(),
                             expected.ids.end()));
    }
    ASSERT_EQ(recalled.scores().s3_fifo, duel.scores().s3_fifo);
  }
}

TEST(DuelTest, AWalkGoesOnBetweenRequests) {
  Prng prng(1);
  Duel duel(EvictionPolicy::kAuto, 40);
  for (int i = 0; i < 50; ++i) duel.request(chain_of(prng, 20));
  std::vector<ShadowMark> marks;
  duel.begin_walk();
  while (!duel.walk(5, marks)) duel.request(chain_of(prng, 3));
  EXPECT_GE(marks.size(), 80u) << "both shadows are told";
}

TEST(DuelTest, AnExtensionIsHeldWithItsChain) {
  for (const EvictionPolicy policy : {EvictionPolicy::kAuto, EvictionPolicy::kS3Fifo}) {
    Duel duel(policy, 4);
    const std::vector<ShadowId> chain = {mix64(1), mix64(2)};
    duel.request(chain);
    EXPECT_EQ(duel.extend(chain[1], mix64(3)).ids.size(), 1u);
    EXPECT_TRUE(duel.holds(mix64(3)));
  }
  // Under leaf-LRU the chain's end goes before what it hangs on.
  LeafLruShadow shadow(3);
  shadow.request(std::vector<ShadowId>{1, 2}, nullptr);
  shadow.extend(2, 3, nullptr);
  shadow.request(std::vector<ShadowId>{9}, nullptr);
  EXPECT_FALSE(shadow.holds(3));
  EXPECT_TRUE(shadow.holds(1) && shadow.holds(2) && shadow.holds(9));
}

TEST(DuelTest, CapacityFollowsTheTier) {
  Duel duel(EvictionPolicy::kAuto, 100);
  Prng prng(3);
  for (int i = 0; i < 200; ++i) duel.request(chain_of(prng, 30));
  const Duel::Change change = duel.set_capacity(10);
  EXPECT_GE(change.ids.size(), 80u);
  for (int i = 0; i < 50; ++i) duel.request(chain_of(prng, 30));
  uint64_t held = 0;
  Prng again(3);
  std::set<ShadowId> known;
  for (int i = 0; i < 250; ++i) {
    for (ShadowId id : chain_of(again, 30)) known.insert(id);
  }
  for (ShadowId id : known) held += duel.holds(id) ? 1u : 0u;
  EXPECT_LE(held, 10u);
}

TEST(DuelTest, BothShadowsStayWithin120BytesABlock) {
  constexpr size_t kBlocks = 100'000;
  Duel duel(EvictionPolicy::kAuto, kBlocks);
  for (uint64_t i = 0; i < 4 * kBlocks; ++i) {
    const ShadowId block = mix64(i);
    duel.request(std::span(&block, 1));
  }
  EXPECT_LE(duel.memory_bytes(), 120 * kBlocks);
  RecordProperty("bytes_a_block", static_cast<int>(duel.memory_bytes() / kBlocks));
}

}  // namespace
}  // namespace ember
