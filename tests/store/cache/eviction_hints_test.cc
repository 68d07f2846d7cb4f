// Hints and pins: what a client knows of the next use decides who goes first, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/store/cache/cache_harness.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;
constexpr int64_t kSecond = 1'000'000;

class EvictionHintsTest : public ::testing::Test {
 protected:
  EvictionHintsTest() { store_.limit_bytes = 120'000; }

  // Other sessions, until the disk has been full for a while.
  void churn(CacheHarness& harness, int sessions = 30) {
    for (int i = 0; i < sessions; ++i) {
      clock_.advance_us(kSecond);
      harness.feed(CacheHarness::tokens(++others_, kSpan * 5), false);
      harness.sync();
      harness.expect_sound();
    }
  }
  // Tokens that a restart would still find.
  static size_t stored(CacheHarness& harness, const std::vector<TokenId>& tokens) {
    harness.cache().drop_tier(Tier::kDevice);
    harness.cache().drop_tier(Tier::kHost);
    return harness.cache().match(tokens).tokens_by_tier[static_cast<size_t>(Tier::kDisk)];
  }
  HarnessOptions options() { return {.device_slots = 16, .host_slots = 8, .clock = &clock_}; }

  MemoryStore store_;
  ManualClock clock_;
  uint64_t others_ = 1000;
};

TEST_F(EvictionHintsTest, OneShotIsNotWrittenDownAndGoesFirst) {
  CacheHarness harness(options(), store_);
  const auto usual = CacheHarness::tokens(1, kSpan * 4);
  const auto once = CacheHarness::tokens(2, kSpan * 4);
  harness.feed(usual, false);
  harness.sync();
  const size_t blocks = store_.blocks.size();
  {
    const auto chain = harness.open_chain(once, 0);
    harness.wait_ready(*chain);
    harness.cache().hint(*chain, {.one_shot = true});
    harness.compute(*chain, once);
    harness.cache().commit_tail(*chain);
  }
  harness.sync();
  harness.drain();
  EXPECT_EQ(store_.blocks.size(), blocks);
  EXPECT_EQ(harness.cache().match(once).tokens, once.size() - 1) << "while there is room for it";
  // The device has 16 slots: 4, 4 and 5 are taken, and 5 more are asked for.
  harness.feed(CacheHarness::tokens(3, kSpan * 5), false);
  harness.feed(CacheHarness::tokens(4, kSpan * 5), false);
  EXPECT_LT(harness.cache().match(once).tokens, once.size() - 1);
  EXPECT_EQ(harness.cache().match(usual).tokens_by_tier[0], usual.size() - 1);
  harness.expect_sound();
  // Extended by a usual request it is worth writing after all.
  const auto more = CacheHarness::tokens(2, kSpan * 5);
  harness.feed(more, false);
  harness.sync();
  EXPECT_EQ(stored(harness, more), more.size() - 1);
}

TEST_F(EvictionHintsTest, AnEndedSessionsOwnBlocksGoFirst) {
  CacheHarness harness(options(), store_);
  const auto older = CacheHarness::tokens(1, kSpan * 6);
  auto ended = CacheHarness::tokens(2, kSpan * 10);  // more than is evicted at once
  auto sibling = CacheHarness::tokens(3, kSpan * 6);
  std::copy_n(ended.begin(), kSpan * 2, sibling.begin());
  for (const auto& tokens : {older, ended, sibling}) {
    clock_.advance_us(kSecond);
    harness.feed(tokens, false);
    harness.sync();
  }
  harness.cache().hint(ended, {.session_ended = true});
  while (stored(harness, ended) == ended.size() - 1) churn(harness, 1);
  EXPECT_EQ(stored(harness, older), older.size() - 1) << "older, but not ended";
  EXPECT_EQ(stored(harness, sibling), sibling.size() - 1) << "shares the beginning";
  EXPECT_GE(stored(harness, ended), kSpan * 2);
}

TEST_F(EvictionHintsTest, UseTakesTheMarkBack) {
  CacheHarness harness(options(), store_);
  const auto older = CacheHarness::tokens(1, kSpan * 6);
  const auto resumed = CacheHarness::tokens(2, kSpan * 6);
  harness.feed(older, false);
  clock_.advance_us(kSecond);
  harness.feed(resumed, false);
  harness.sync();
  harness.cache().hint(resumed, {.session_ended = true});
  harness.feed(resumed, false);
  while (stored(harness, older) == older.size() - 1) churn(harness, 1);
  EXPECT_EQ(stored(harness, resumed), resumed.size() - 1);
}

TEST_F(EvictionHintsTest, APinHoldsUntilItsTimeIsOver) {
  CacheHarness harness(options(), store_);
  const auto pinned = CacheHarness::tokens(1, kSpan * 4 + 9);
  harness.feed(pinned);
  harness.sync();
  const auto tokens = harness.cache().pin(pinned, 3600 * kSecond);
  ASSERT_TRUE(tokens.ok()) << tokens.error().message;
  EXPECT_EQ(*tokens, kSpan * 4) << "full blocks";
  churn(harness, 60);
  EXPECT_GE(stored(harness, pinned), kSpan * 4);
  EXPECT_EQ(harness.cache().stats().pinned_blocks, 4u);
  clock_.advance_us(3600 * kSecond);
  harness.cache().tick();
  EXPECT_EQ(harness.cache().stats().pinned_blocks, 0u);
  EXPECT_EQ(harness.cache().stats().expired_pins, 4u);
  churn(harness, 60);
  EXPECT_LT(stored(harness, pinned), kSpan * 4);
}

TEST_F(EvictionHintsTest, PinsHoldAShareAndEndWhenToldSo) {
  CacheHarness harness(options(), store_);
  churn(harness, 20);  // the disk has been full: its blocks are known
  std::vector<std::vector<TokenId>> pinned;
  bool refused = false;
  for (uint64_t i = 0; i < 20 && !refused; ++i) {
    pinned.push_back(CacheHarness::tokens(i, kSpan * 3));
    harness.feed(pinned.back(), false);
    harness.sync();
    const auto result = harness.cache().pin(pinned.back(), 60 * kSecond);
    refused = !result.ok();
    if (refused) {
      EXPECT_EQ(result.error().code, ErrorCode::kCapacity);
    }
  }
  ASSERT_TRUE(refused);
  const BlockCacheStats full = harness.cache().stats();
  EXPECT_EQ(full.refused_pins, 1u);
  EXPECT_LE(full.pinned_blocks, full.blocks[static_cast<size_t>(Tier::kDisk)] / 3);
  EXPECT_GT(full.pinned_blocks, 0u);
  for (const auto& tokens : pinned) EXPECT_TRUE(harness.cache().pin(tokens, 0).ok());
  EXPECT_EQ(harness.cache().stats().pinned_blocks, 0u);
  EXPECT_EQ(harness.cache().pin(pinned[0], -1).error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(harness.cache().pin(pinned[0], BlockCache::kLongestPinUs + 1).ok());
  harness.expect_sound();
}

TEST_F(EvictionHintsTest, AnExpectedUseSparesUntilThen) {
  CacheHarness harness(options(), store_);
  const auto expected = CacheHarness::tokens(1, kSpan * 4);
  harness.feed(expected, false);
  harness.sync();
  harness.cache().hint(expected, {.next_use_us = 3600 * kSecond});
  churn(harness, 40);
  EXPECT_EQ(stored(harness, expected), expected.size() - 1);
  EXPECT_EQ(harness.cache().stats().pinned_blocks, 0u);
  clock_.advance_us(3600 * kSecond);
  harness.cache().tick();
  churn(harness, 40);
  EXPECT_LT(stored(harness, expected), expected.size() - 1);
}

}  // namespace
}  // namespace ember::testing
