// Warm-up after a restart: what comes up by itself, how fast, and what it leaves alone.
#include <gtest/gtest.h>

#include "tests/store/cache/cache_harness.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;
constexpr size_t kHost = static_cast<size_t>(Tier::kHost);

class WarmUpTest : public ::testing::Test {
 protected:
  WarmUpTest() {
    options_.path = folder_ / "store";
    options_.access_log_bytes = 256u << 10;
    options_.warm_up_bytes_per_second = 1u << 30;
    options_.clock = &clock_;
  }
  // Time passes and what is under way ends; no request comes.
  void idle(CacheHarness& harness, int64_t us) {
    for (int64_t passed = 0; passed < us; passed += 10'000) {
      clock_.advance_us(10'000);
      harness.cache().tick();
      for (int i = 0; i < 4; ++i) harness.step();
    }
  }
  static uint64_t warmed(CacheHarness& harness) { return harness.cache().stats().warmed_blocks; }

  const TempFolder folder_;
  ManualClock clock_;
  HarnessOptions options_;
  MemoryStore unused_;
};

TEST_F(WarmUpTest, WhatWasUsedIsInRamBeforeAnyoneAsks) {
  CacheHarness harness(options_, unused_);
  const auto tokens = CacheHarness::tokens(1, kSpan * 6 + 9);
  harness.feed(tokens);
  harness.sync();
  harness.reopen();
  idle(harness, 1'000'000);
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_EQ(stats.warmed_blocks, 6u);
  EXPECT_GT(stats.warmed_bytes, 0u);
  EXPECT_EQ(stats.warm_up_left, 0u);
  EXPECT_EQ(stats.blocks[kHost], 6u);
  const auto outcome = harness.feed(tokens);  // which checks every row
  EXPECT_EQ(outcome.report.restored_tokens[kHost], kSpan * 6);
  harness.drain();
  harness.expect_sound();
}

TEST_F(WarmUpTest, WithoutTheSettingOrTheLogNothingComesUp) {
  for (const bool log : {true, false}) {
    options_.path = folder_ / (log ? "log" : "none");
    options_.access_log_bytes = log ? 256u << 10 : 0;
    options_.warm_up_bytes_per_second = log ? 0 : 1u << 30;
    CacheHarness harness(options_, unused_);
    harness.feed(CacheHarness::tokens(1, kSpan * 6), false);
    harness.sync();
    harness.reopen();
    idle(harness, 1'000'000);
    EXPECT_EQ(warmed(harness), 0u);
    EXPECT_EQ(harness.cache().stats().blocks[kHost], 0u);
  }
}

TEST_F(WarmUpTest, ItTakesFreeSlotsAloneAndLeavesSome) {
  options_.device_slots = 48;
  options_.host_slots = 16;
  CacheHarness harness(options_, unused_);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    harness.feed(CacheHarness::tokens(seed, kSpan * 8), false);
    harness.sync();
  }
  harness.reopen();
  idle(harness, 1'000'000);
  EXPECT_EQ(warmed(harness), 14u);
  EXPECT_EQ(harness.cache().stats().evicted_blocks, 0u);
  // The latest chain is there whole.
  const auto latest = harness.feed(CacheHarness::tokens(5, kSpan * 8), false);
  EXPECT_EQ(latest.report.restored_tokens[kHost], kSpan * 8 - 1);
  harness.drain();
  harness.expect_sound();
}

TEST_F(WarmUpTest, AtMostItsRate) {
  CacheHarness harness(options_, unused_);
  harness.feed(CacheHarness::tokens(1, kSpan * 12), false);
  harness.sync();
  harness.reopen();
  idle(harness, 1'000'000);
  const uint64_t block_bytes = harness.cache().stats().warmed_bytes / warmed(harness);
  options_.warm_up_bytes_per_second = block_bytes;  // one a second
  harness.close();
  CacheHarness slow(options_, unused_);
  for (uint64_t second = 1; second <= 5; ++second) {
    idle(slow, 1'000'000);
    EXPECT_LE(warmed(slow), second + 2);
    EXPECT_GE(warmed(slow) + 2, second);
  }
}

TEST_F(WarmUpTest, ARequestGoesBeforeIt) {
  CacheHarness harness(options_, unused_);
  const auto tokens = CacheHarness::tokens(1, kSpan * 4);
  harness.feed(CacheHarness::tokens(2, kSpan * 6), false);
  harness.feed(tokens, false);
  harness.sync();
  harness.reopen();
  while (harness.cache().loading()) harness.step();
  const auto chain = harness.open_chain(tokens, tokens.size() - 1);
  ASSERT_NE(chain, nullptr);
  harness.wait_ready(*chain);
  for (int i = 0; i < 50; ++i) {
    harness.cache().tick();
    harness.step();
  }
  EXPECT_LE(warmed(harness), 2u) << "no more than what was under way";
  harness.compute(*chain, tokens);
  idle(harness, 1'000'000);
  EXPECT_GE(warmed(harness), 6u) << "afterwards it goes on";
}

// Closing, and requests, at any point of it.
TEST_F(WarmUpTest, EndsCleanlyWhereverItIsCut) {
  {
    CacheHarness harness(options_, unused_);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      harness.feed(CacheHarness::tokens(seed, kSpan * 4), false);
    }
    harness.sync();
  }
  for (int steps = 0; steps < 30; ++steps) {
    options_.sim_seed = 1 + static_cast<uint64_t>(steps);
    CacheHarness harness(options_, unused_);
    for (int i = 0; i < steps; ++i) {
      clock_.advance_us(30'000);
      harness.cache().tick();
      harness.step();
    }
    if (steps % 3 == 0) continue;
    const auto tokens = CacheHarness::tokens(1 + static_cast<uint64_t>(steps % 3), kSpan * 4);
    EXPECT_EQ(harness.feed(tokens, false).restored, kSpan * 4 - 1);
    harness.drain();
    harness.expect_sound();
  }
}

}  // namespace
}  // namespace ember::testing
