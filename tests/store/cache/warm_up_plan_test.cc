// Which blocks come up first, against a plain sum over all requests.
#include "store/cache/warm_up_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/prng.h"

namespace ember {
namespace {

BlockHash hash_of(uint64_t number) {
  BlockHash hash;
  std::memcpy(hash.bytes.data(), &number, sizeof number);
  return hash;
}

// A chain named by its numbers, root first.
AccessEntry chain(std::initializer_list<uint64_t> numbers) {
  AccessEntry entry;
  for (const uint64_t number : numbers) entry.blocks.push_back(hash_of(number));
  return entry;
}

TEST(WarmUpPlanTest, LatelyAndOftenComeFirstAndChainsFromTheirRoot) {
  WarmUpPlan plan(5);
  plan.add(chain({1, 2, 3}));
  plan.add(chain({7, 8}));
  plan.add(chain({1, 2, 4}));
  EXPECT_EQ(plan.blocks(), (std::vector<BlockHash>{hash_of(1), hash_of(2), hash_of(4), hash_of(7),
                                                   hash_of(8)}));
}

TEST(WarmUpPlanTest, NothingWantedOrKnownIsNothing) {
  WarmUpPlan none(0);
  none.add(chain({1, 2}));
  EXPECT_TRUE(none.blocks().empty());
  EXPECT_TRUE(WarmUpPlan(9).blocks().empty());
}

TEST(WarmUpPlanTest, OldUseIsWorthLessThanLateUse) {
  WarmUpPlan plan(1);
  plan.add(chain({1}));
  plan.add(chain({1}));
  for (int i = 0; i < 2000; ++i) plan.add(chain({}));
  plan.add(chain({2}));
  EXPECT_EQ(plan.blocks(), std::vector<BlockHash>{hash_of(2)});
}

// Requests for random paths of a tree in which block n hangs on block n / 3.
std::vector<AccessEntry> random_log(Prng& random, size_t requests) {
  std::vector<AccessEntry> log;
  for (size_t i = 0; i < requests; ++i) {
    AccessEntry entry;
    for (uint64_t n = 1 + random.below(400); n > 0; n /= 3) {
      entry.blocks.insert(entry.blocks.begin(), hash_of(n));
    }
    log.push_back(entry);
  }
  return log;
}

TEST(WarmUpPlanTest, AgreesWithAPlainSumOverSeeds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Prng random(seed);
    const std::vector<AccessEntry> log = random_log(random, 1 + random.below(600));
    const size_t most = 8 + random.below(200);
    WarmUpPlan plan(most);
    std::map<BlockHash, double> scores;
    std::map<BlockHash, std::set<BlockHash>> parents;
    for (size_t i = 0; i < log.size(); ++i) {
      plan.add(log[i]);
      const auto ago = static_cast<double>(log.size() - 1 - i);
      const auto& blocks = log[i].blocks;
      for (size_t b = 0; b < blocks.size(); ++b) {
        scores[blocks[b]] += std::exp2(-ago / WarmUpPlan::kHalfLifeRequests);
        if (b > 0) parents[blocks[b]].insert(blocks[b - 1]);
      }
    }
    const std::vector<BlockHash> found = plan.blocks();
    ASSERT_EQ(found.size(), std::min(most, scores.size()));
    std::set<BlockHash> came;
    double last = std::exp2(20);
    for (const BlockHash& hash : found) {
      ASSERT_LE(scores.at(hash), last + 1e-9);
      last = scores.at(hash);
      for (const BlockHash& parent : parents[hash]) ASSERT_TRUE(came.contains(parent));
      ASSERT_TRUE(came.insert(hash).second);
    }
    for (const auto& [hash, score] : scores) {
      if (came.contains(hash)) continue;
      ASSERT_LE(score, last + 1e-9);
    }
  }
}

TEST(WarmUpPlanTest, MemoryIsBoundedAndTheBestStay) {
  WarmUpPlan plan(4);
  size_t most = 0;
  for (uint64_t i = 0; i < 200'000; ++i) {
    plan.add(chain({1, 2, 1000 + i}));
    most = std::max(most, plan.known());
  }
  EXPECT_LE(most, kMostAccessBlocks + 64);
  const std::vector<BlockHash> found = plan.blocks();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0], hash_of(1));
  EXPECT_EQ(found[1], hash_of(2));
  EXPECT_EQ(found[2], hash_of(1000 + 199'999));
}

}  // namespace
}  // namespace ember
