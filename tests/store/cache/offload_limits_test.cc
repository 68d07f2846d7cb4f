// What the limits cost: budget, age, shares of RAM, blocks that a full drive took.
#include <gtest/gtest.h>

#include "store/cache/write_budget.h"
#include "tests/store/cache/cache_harness.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;
constexpr size_t kLength = kSpan * 6 + 20;
constexpr int64_t kHourUs = 3'600'000'000;
constexpr size_t kDisk = static_cast<size_t>(Tier::kDisk);

TEST(WriteBudgetTest, NoDayIsChargedMoreThanTheBudget) {
  constexpr uint64_t kBudget = 24'000'000;
  WriteBudget budget(kBudget, 0);
  uint64_t written = 0;
  int64_t now = 0;
  for (; now < 24 * kHourUs; now += 1'000'000) {
    while (budget.allows(now)) {
      budget.charge(1000);
      written += 1000;
    }
  }
  EXPECT_LE(written, kBudget + 1000);
  EXPECT_GT(written, kBudget / 100 * 99);
  EXPECT_TRUE(WriteBudget(0, 0).allows(0)) << "no limit";
}

TEST(WriteBudgetTest, AnHourIsSavedUpAndDebtIsPaidBack) {
  WriteBudget budget(24'000'000, 0);
  EXPECT_EQ(budget.left_bytes(), 1'000'000u);
  budget.charge(3'000'000);
  EXPECT_FALSE(budget.allows(kHourUs));
  EXPECT_TRUE(budget.allows(3 * kHourUs));
  EXPECT_TRUE(budget.allows(100 * kHourUs));
  EXPECT_EQ(budget.left_bytes(), 1'000'000u) << "no more than an hour's worth";
}

TEST(OffloadLimitsTest, BudgetSlowsOffloadAndNothingElse) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    MemoryStore store;
    ManualClock clock;
    // Enough for one block, and then for one in some hours.
    CacheHarness harness({.sim_seed = seed, .clock = &clock, .write_bytes_per_day = 24'000}, store);
    const auto tokens = CacheHarness::tokens(1, kLength);
    EXPECT_TRUE(harness.feed(tokens, false).opened);
    harness.sync();  // ends, and says that not all is durable
    harness.drain();
    BlockCacheStats stats = harness.cache().stats();
    EXPECT_LT(stats.durable_blocks, 6u);
    EXPECT_GT(stats.waiting_blocks, 0u);
    EXPECT_FALSE(harness.cache().busy());
    EXPECT_EQ(harness.feed(tokens, false).restored, kLength - kLength % kSpan) << "from RAM";
    for (int hour = 0; hour < 48; ++hour) {
      clock.advance_us(kHourUs);
      harness.cache().tick();
      harness.drain();
    }
    harness.sync();
    stats = harness.cache().stats();
    EXPECT_EQ(stats.durable_blocks, 6u);
    EXPECT_EQ(stats.waiting_blocks, 0u);
    EXPECT_EQ(stats.offload_failures, 0u);
    harness.expect_sound();
  }
}

TEST(OffloadLimitsTest, ClosingGivesUpWhatTheBudgetHolds) {
  MemoryStore store;
  ManualClock clock;
  {
    CacheHarness harness({.clock = &clock, .write_bytes_per_day = 24'000}, store);
    harness.feed(CacheHarness::tokens(1, kLength), false);
  }
  EXPECT_LT(store.blocks.size(), 6u);
  EXPECT_EQ(store.order_faults, 0u);
}

TEST(OffloadLimitsTest, WhatNobodyUsedForTheMaximumAgeGoes) {
  MemoryStore store;
  ManualClock clock;
  clock.advance_us(100 * kHourUs);
  CacheHarness harness({.clock = &clock, .max_age_us = 10 * kHourUs}, store);
  const auto old = CacheHarness::tokens(1, kLength), young = CacheHarness::tokens(2, kLength);
  harness.feed(old);
  harness.sync();
  clock.advance_us(8 * kHourUs);
  harness.feed(young);
  harness.sync();
  clock.advance_us(3 * kHourUs);
  harness.cache().drop_tier(Tier::kDevice);  // a copy in RAM keeps the parents on disk
  harness.cache().drop_tier(Tier::kHost);
  for (int i = 0; i < 50; ++i) {
    harness.cache().tick();
    harness.drain();
  }
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_EQ(stats.aged_blocks, 7u) << "six blocks and a tail";
  EXPECT_EQ(stats.blocks[kDisk], 6u);
  EXPECT_EQ(store.blocks.size(), 6u);
  EXPECT_EQ(store.tails.size(), 1u);
  EXPECT_EQ(harness.feed(young).restored, kLength - 1);
  harness.expect_sound();
}

TEST(OffloadLimitsTest, IndexKeepsItsShareOfRam) {
  MemoryStore store;
  constexpr uint64_t kShare = 1u << 20;
  CacheHarness harness({.index_bytes = kShare}, store);
  for (uint64_t id = 0; id < 500; ++id) {
    harness.feed(CacheHarness::tokens(id, kSpan * 10), false);
    if (id % 2 == 1) harness.sync();
  }
  harness.sync();
  harness.drain();
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_LE(stats.index_bytes, kShare);
  EXPECT_GT(stats.index_evictions, 1000u);
  EXPECT_GT(stats.blocks[kDisk], 500u);
  EXPECT_EQ(store.blocks.size(), stats.blocks[kDisk]);
  harness.expect_sound();
}

TEST(OffloadLimitsTest, CodedBlocksKeepTheirShareOfRam) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    MemoryStore store;
    CacheHarness harness({.sim_seed = seed, .device_slots = 64, .staging_bytes = 8000}, store);
    for (uint64_t id = 0; id < 6; ++id) harness.feed(CacheHarness::tokens(id, kLength));
    harness.sync();
    const BlockCacheStats stats = harness.cache().stats();
    EXPECT_EQ(stats.durable_blocks, 36u);
    EXPECT_GT(stats.staging_peak_bytes, 0u);
    EXPECT_LE(stats.staging_peak_bytes, 8000u);
  }
}

TEST(OffloadLimitsTest, LostBlockIsWrittenAnewFromACopyOrLeavesAHoleThatRecomputeHeals) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    MemoryStore store;
    const auto tokens = CacheHarness::tokens(1, kLength), other = CacheHarness::tokens(2, kLength);
    CacheHarness harness({.sim_seed = seed}, store);
    harness.feed(tokens);
    harness.sync();
    store.lose(harness.hash_of(tokens, 2));
    harness.cache().tick();
    harness.feed(other);
    harness.sync();
    EXPECT_EQ(harness.cache().stats().lost_blocks, 1u);
    EXPECT_EQ(harness.cache().stats().holes, 0u);
    harness.sync();
    EXPECT_NE(store.blocks.at(harness.hash_of(tokens, 2)).record.epoch, 0u) << "from the device";

    harness.cache().drop_tier(Tier::kDevice);
    harness.cache().drop_tier(Tier::kHost);
    store.lose(harness.hash_of(tokens, 2));
    harness.cache().tick();
    harness.feed(CacheHarness::tokens(3, kLength));
    harness.sync();
    EXPECT_EQ(harness.cache().stats().holes, 1u);
    EXPECT_EQ(harness.cache().match(tokens).tokens, 2 * kSpan);
    harness.expect_sound();
    harness.reopen();
    EXPECT_EQ(harness.cache().stats().holes, 1u) << "the next process knows it too";
    EXPECT_EQ(harness.feed(tokens).restored, 2 * kSpan);
    harness.sync();
    EXPECT_EQ(harness.cache().stats().holes, 0u);
    harness.cache().drop_tier(Tier::kDevice);
    harness.cache().drop_tier(Tier::kHost);
    EXPECT_EQ(harness.feed(tokens).restored, kLength - 1);
    harness.expect_sound();
  }
}

TEST(OffloadLimitsTest, HolesWithNothingBelowThemAreClearedAwayAtOpening) {
  MemoryStore store;
  const auto tokens = CacheHarness::tokens(1, kSpan * 6);
  CacheHarness harness({}, store);
  harness.feed(tokens, false);
  harness.sync();
  harness.close();
  for (size_t i = 3; i < 6; ++i) store.lose(harness.hash_of(tokens, i));
  store.lost.clear();
  harness.reopen();
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_EQ(stats.holes, 0u);
  EXPECT_EQ(stats.foreign_blocks, 3u) << "the first to go";
  EXPECT_EQ(harness.cache().match(tokens).tokens, 3 * kSpan);
  harness.expect_sound();
}

}  // namespace
}  // namespace ember::testing
