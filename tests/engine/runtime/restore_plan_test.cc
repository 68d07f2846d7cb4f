// The restore plan: its bounds, and that no other place to stop would be better.
#include "engine/runtime/restore_plan.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace ember {
namespace {

using Match = BlockCache::Match;

Match match_of(std::vector<BlockCache::TierRun> runs) {
  Match match;
  match.runs = std::move(runs);
  for (const BlockCache::TierRun& run : match.runs) match.tokens += run.tokens;
  return match;
}

// Computing takes 100 us a token and 1 ms a step, restoring from disk `disk_us` a token and 1 ms.
CostModel costs_of(double disk_us) {
  CostModel costs({.step_us = 1000,
                   .token_us = 100,
                   .token_position_us = 0.001,
                   .chunk_tokens = 256,
                   .token_bytes = 1000});
  for (uint64_t tokens : {64u, 640u, 6400u, 64'000u}) {
    for (int i = 0; i < 20; ++i) {
      costs.saw_restore({0, 0, tokens, 0},
                        static_cast<int64_t>(1000 + disk_us * static_cast<double>(tokens)));
    }
  }
  return costs;
}

TEST(RestorePlanTest, TheLastTokenIsAlwaysComputed) {
  for (const RestorePolicy policy : {RestorePolicy::kAlways, RestorePolicy::kByCost}) {
    const Match match = match_of({{Tier::kDevice, 100}});
    const RestorePlan plan = plan_restore(100, match, costs_of(1), policy);
    EXPECT_EQ(plan.restore_tokens, 99u);
    EXPECT_EQ(plan.compute_tokens, 1u);
    EXPECT_EQ(plan_restore(1, match, costs_of(1), policy).restore_tokens, 0u);
    EXPECT_EQ(plan_restore(7, Match(), costs_of(1), policy).compute_tokens, 7u);
  }
}

TEST(RestorePlanTest, AHitThatDoesNotPayIsNotTaken) {
  const Match match = match_of({{Tier::kDisk, 640}});
  const RestorePlan fast = plan_restore(1000, match, costs_of(1), RestorePolicy::kByCost);
  EXPECT_EQ(fast.restore_tokens, 640u);
  EXPECT_EQ(fast.skipped_tokens, 0u);
  const RestorePlan slow = plan_restore(1000, match, costs_of(500), RestorePolicy::kByCost);
  EXPECT_EQ(slow.restore_tokens, 0u);
  EXPECT_EQ(slow.skipped_tokens, 640u);
  EXPECT_EQ(plan_restore(1000, match, costs_of(500), RestorePolicy::kAlways).restore_tokens, 640u);
}

TEST(RestorePlanTest, WhatLiesOnTheDeviceIsUsedWhereTheRestDoesNotPay) {
  const Match match = match_of({{Tier::kDevice, 128}, {Tier::kDisk, 640}});
  const RestorePlan plan = plan_restore(1000, match, costs_of(500), RestorePolicy::kByCost);
  EXPECT_EQ(plan.restore_tokens, 128u);
  EXPECT_EQ(plan.skipped_tokens, 640u);
  EXPECT_EQ(plan.restore_us, 0);
}

// Against every place to stop, token by token.
TEST(RestorePlanTest, NoOtherPlaceToStopIsBetter) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Prng prng(seed);
    CostModel costs({.step_us = 0,
                     .token_us = 10.0 + static_cast<double>(prng.below(200)),
                     .token_position_us = 0.001 * static_cast<double>(prng.below(50)),
                     .chunk_tokens = 256,
                     .token_bytes = static_cast<double>(1000 + prng.below(70'000))});
    std::vector<BlockCache::TierRun> runs;
    for (uint64_t i = prng.below(5); i > 0; --i) {
      runs.push_back({kAllTiers[prng.below(kTierCount)], 1 + prng.below(400)});
    }
    const Match match = match_of(runs);
    const size_t prompt = 1 + prng.below(1500);
    const RestorePlan plan = plan_restore(prompt, match, costs, RestorePolicy::kByCost);
    ASSERT_EQ(plan.restore_tokens + plan.compute_tokens, prompt);
    ASSERT_GE(plan.compute_tokens, 1u);
    const size_t known = std::min(match.tokens, prompt - 1);
    CostModel::TokensByTier from{};
    size_t run = 0, of_run = 0;
    for (size_t stop = 0; stop <= known; ++stop) {
      const double us = costs.restore_us(from) + costs.compute_us(prompt - stop, stop);
      ASSERT_LE(plan.restore_us + plan.compute_us, us * (1 + 1e-9)) << "seed " << seed << ", stop "
                                                                   << stop;
      if (stop == known) break;
      while (of_run == match.runs[run].tokens) ++run, of_run = 0;
      ++of_run;
      ++from[static_cast<size_t>(match.runs[run].tier)];
    }
  }
}

TEST(RestoreProbeTest, ProbesCostAFixedShareOfTheTime) {
  RestoreProbe probe;
  const CostModel costs = costs_of(500);
  const Match match = match_of({{Tier::kDisk, 640}});
  double total_us = 0, extra_us = 0;
  int probes = 0;
  for (int i = 0; i < 1000; ++i) {
    const RestorePlan plan = probe.plan(1000, match, costs);
    const RestorePlan best = plan_restore(1000, match, costs, RestorePolicy::kByCost);
    total_us += best.compute_us;
    if (plan.restore_tokens == 0) continue;
    ++probes;
    EXPECT_EQ(plan.restore_tokens, 640u);
    EXPECT_GE(plan.patience_us, plan.restore_us);
    extra_us += plan.restore_us + plan.compute_us - best.compute_us;
  }
  EXPECT_GE(probes, 2);
  EXPECT_LE(extra_us, 0.01 * total_us);
}

}  // namespace
}  // namespace ember
