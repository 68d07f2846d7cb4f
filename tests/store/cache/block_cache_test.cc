// The cache's promises, tier by tier, on a device that completes late and out of order.
#include "store/block_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/store/cache/cache_harness.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;

size_t in_tier(const RestoreReport& report, Tier tier) {
  return report.restored_tokens[static_cast<size_t>(tier)];
}

TEST(BlockCacheTest, NothingIsKnownAtFirst) {
  MemoryStore store;
  CacheHarness harness({}, store);
  EXPECT_EQ(harness.cache().match(CacheHarness::tokens(1, 300)).tokens, 0u);
  EXPECT_EQ(harness.cache().match({}).tokens, 0u);
}

TEST(BlockCacheTest, WhatWasCommittedIsReadInPlaceOnTheDevice) {
  MemoryStore store;
  CacheHarness harness({}, store);
  const auto tokens = CacheHarness::tokens(1, 200);
  EXPECT_EQ(harness.feed(tokens).restored, 0u);
  const auto again = harness.feed(tokens);
  // Three full blocks in place; of the tail of 8 at most 7, since the last token must run.
  EXPECT_EQ(in_tier(again.report, Tier::kDevice), 192u);
  harness.drain();
  EXPECT_EQ(harness.feed(tokens).restored, 199u);
  harness.expect_sound();
}

// Every boundary +-1 and tails of 1, 31 and 63 tokens, over every tier, and after reopening.
TEST(BlockCacheTest, RestoredBytesAreEqualFromEveryTier) {
  for (uint32_t layers_per_group : {1u, 2u, 3u}) {
    for (size_t length : {1u, 2u, 31u, 63u, 64u, 65u, 95u, 127u, 128u, 129u, 191u, 192u, 193u}) {
      MemoryStore store;
      CacheHarness harness({.sim_seed = length, .layers_per_group = layers_per_group}, store);
      const auto tokens = CacheHarness::tokens(length, length);
      EXPECT_EQ(harness.feed(tokens).restored, 0u);
      harness.drain();
      EXPECT_EQ(harness.feed(tokens).restored, length - 1);
      harness.sync();
      harness.drain();
      harness.cache().drop_tier(Tier::kDevice);
      const auto host = harness.feed(tokens);
      EXPECT_EQ(in_tier(host.report, Tier::kHost), length - 1);
      harness.sync();
      harness.drain();
      harness.cache().drop_tier(Tier::kDevice);
      harness.cache().drop_tier(Tier::kHost);
      const auto disk = harness.feed(tokens);
      EXPECT_EQ(in_tier(disk.report, Tier::kDisk), length - 1);
      harness.sync();
      harness.reopen();
      const auto reopened = harness.feed(tokens);
      EXPECT_EQ(in_tier(reopened.report, Tier::kDisk), length - 1);
      harness.expect_sound();
    }
  }
}

TEST(BlockCacheTest, LongerPromptUsesWhatAgreesDownToTheToken) {
  MemoryStore store;
  CacheHarness harness({}, store);
  const auto tokens = CacheHarness::tokens(3, 170);
  harness.feed(tokens);
  harness.sync();
  for (size_t agree : {1u, 63u, 64u, 65u, 100u, 128u, 129u, 169u, 170u}) {
    harness.reopen();
    auto other = CacheHarness::tokens(4, 180);
    std::copy(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(agree), other.begin());
    EXPECT_EQ(harness.feed(other, false).restored, agree);
  }
  harness.expect_sound();
}

TEST(BlockCacheTest, LongerTailReplacesTheShorterOne) {
  MemoryStore store;
  CacheHarness harness({}, store);
  const auto tokens = CacheHarness::tokens(5, 140);
  for (size_t length : {65u, 90u, 100u}) {
    harness.feed({tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length)});
    harness.sync();
    harness.drain();
    EXPECT_EQ(store.tails.size(), 1u) << length;
  }
  harness.feed(tokens);
  harness.sync();
  harness.drain();
  EXPECT_EQ(store.tails.size(), 1u);  // of 12 tokens, behind the new full block
  EXPECT_EQ(store.tails.begin()->second.record.tokens.size(), 12u);
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens).restored, 139u);
  harness.expect_sound();
}

TEST(BlockCacheTest, CommittedTwiceIsStoredOnce) {
  MemoryStore store;
  CacheHarness harness({}, store);
  const auto tokens = CacheHarness::tokens(6, 128);
  harness.feed(tokens);
  harness.feed(tokens, true, false);
  harness.sync();
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_EQ(stats.committed_blocks, 4u);
  EXPECT_EQ(stats.dedup_blocks, 2u);
  EXPECT_EQ(stats.offloaded_blocks, 2u);
  EXPECT_EQ(stats.durable_blocks, 2u);
  EXPECT_EQ(store.blocks.size(), 2u);
  harness.expect_sound();
}

TEST(BlockCacheTest, ClosingWaitsForWhoeverStillWritesConversations) {
  MemoryStore store;
  CacheHarness harness({.sim_seed = 0}, store);
  std::atomic<bool> written = false;
  harness.device().run_host(HostLane::kWrite, [&written]() -> Status {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    written = true;
    return {};
  });
  harness.close();
  EXPECT_TRUE(written);
}

TEST(BlockCacheTest, BlockComputedAgainIsComparedWithWhatWasStored) {
  MemoryStore store;
  CacheHarness harness({}, store);
  const auto tokens = CacheHarness::tokens(16, 64);
  harness.feed(tokens, false);
  harness.sync();
  harness.feed(tokens, false, false);
  harness.drain();
  EXPECT_EQ(harness.cache().stats().dedup_checked, 1u);
  EXPECT_EQ(harness.cache().stats().dedup_mismatch, 0u);
  // As if the earlier run had computed something else.
  store.blocks.begin()->second.record.groups[1].checksum ^= 1;
  harness.feed(tokens, false, false);
  harness.drain();
  EXPECT_EQ(harness.cache().stats().dedup_checked, 2u);
  EXPECT_EQ(harness.cache().stats().dedup_mismatch, 1u);
  harness.expect_sound();
}

TEST(BlockCacheTest, RestoresOfOneBlockShareItsFill) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    MemoryStore store;
    CacheHarness harness({.sim_seed = seed, .device_slots = 40}, store);
    const auto tokens = CacheHarness::tokens(7, 64 * 6 + 1);
    harness.feed(tokens);
    harness.sync();
    harness.reopen();
    const uint64_t before = store.reads;
    auto first = harness.open_chain(tokens, tokens.size() - 1);
    auto second = harness.open_chain(tokens, tokens.size() - 1);
    ASSERT_TRUE(first && second);
    harness.wait_ready(*first);
    harness.wait_ready(*second);
    EXPECT_EQ(store.reads - before, 6u * 3u);
    EXPECT_EQ(first->length(), 384u);
    EXPECT_EQ(second->length(), 384u);
    harness.expect_rows(*first, tokens, 384);
    harness.expect_rows(*second, tokens, 384);
    EXPECT_EQ(first->block_table()[0], second->block_table()[0]);
    EXPECT_NE(first->block_table()[6], second->block_table()[6]);
  }
}

TEST(BlockCacheTest, ChainDestroyedWhileRestoringGivesItsSlotsBackLater) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    MemoryStore store;
    CacheHarness harness({.sim_seed = seed}, store);
    const auto tokens = CacheHarness::tokens(8, 64 * 8 + 5);
    harness.feed(tokens);
    harness.sync();
    harness.reopen();
    auto chain = harness.open_chain(tokens, tokens.size() - 1);
    ASSERT_TRUE(chain);
    for (uint64_t i = 0; i < seed; ++i) harness.step();
    chain.reset();
    const auto again = harness.feed(tokens);
    EXPECT_EQ(again.restored, tokens.size() - 1);
    harness.drain();
    harness.expect_sound();
  }
}

TEST(BlockCacheTest, PartOfAMatchCanBeRestored) {
  MemoryStore store;
  CacheHarness harness({}, store);
  const auto tokens = CacheHarness::tokens(9, 300);
  harness.feed(tokens);
  harness.sync();
  for (size_t want : {0u, 1u, 64u, 100u, 256u, 299u}) {
    harness.reopen();
    auto chain = harness.open_chain(tokens, want);
    ASSERT_TRUE(chain);
    harness.wait_ready(*chain);
    EXPECT_EQ(chain->length(), want);
    harness.expect_rows(*chain, tokens, want);
    harness.compute(*chain, tokens);
    harness.expect_rows(*chain, tokens, tokens.size());
  }
}

TEST(BlockCacheTest, TwoNamespacesShareAStoreAndNoBlock) {
  MemoryStore store;
  const auto tokens = CacheHarness::tokens(10, 200);
  {
    CacheHarness first({.name_space = 1}, store);
    first.feed(tokens);
    first.sync();
  }
  CacheHarness second({.name_space = 2}, store);
  EXPECT_EQ(second.cache().match(tokens).tokens, 0u);
  EXPECT_EQ(second.cache().stats().foreign_blocks, 3u);
  second.feed(tokens);
  second.sync();
  EXPECT_EQ(store.blocks.size(), 6u);
  second.close();
  CacheHarness first({.name_space = 1}, store);
  EXPECT_EQ(first.feed(tokens).restored, 199u);
}

TEST(BlockCacheTest, AnotherNumericsBuildIsAMissAndIsReplaced) {
  MemoryStore store;
  const auto tokens = CacheHarness::tokens(11, 200);
  {
    CacheHarness harness({.numerics_build = 7}, store);
    harness.feed(tokens);
  }
  CacheHarness harness({.numerics_build = 8}, store);
  EXPECT_EQ(harness.feed(tokens).restored, 0u);
  harness.sync();
  EXPECT_EQ(harness.cache().stats().foreign_blocks, 0u);
  EXPECT_EQ(store.blocks.size(), 3u);
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens).restored, 199u);
}

// Counted as things change, never by a walk; expect_sound compares with a walk in every other test.
TEST(BlockCacheTest, StatsAreThoseOfAScan) {
  MemoryStore store;
  const auto first = CacheHarness::tokens(21, 64 * 5 + 9);
  const auto second = CacheHarness::tokens(22, 64 * 4 + 3);
  const auto expect_counted = [](CacheHarness& harness, uint64_t foreign, uint64_t tails) {
    const BlockLedger& ledger = harness.cache().ledger();
    EXPECT_EQ(ledger.census(), ledger.full_census());
    EXPECT_EQ(ledger.census().foreign_builds, foreign);
    EXPECT_EQ(ledger.census().tails_on_disk, tails);
  };
  {
    CacheHarness harness({.numerics_build = 7}, store);
    harness.feed(first);
    harness.feed(second);
    harness.sync();
    expect_counted(harness, 0, 2);
  }
  CacheHarness harness({.numerics_build = 8}, store);
  expect_counted(harness, 11, 2);  // all of them, and their tails
  harness.feed(first);
  harness.sync();
  expect_counted(harness, 5, 2);
  harness.drain();
  harness.expect_sound();
}

TEST(BlockCacheTest, WithoutAStoreTheRamTiersWork) {
  MemoryStore store;
  CacheHarness harness({.device_slots = 8, .host_slots = 16, .store = false}, store);
  const auto tokens = CacheHarness::tokens(12, 200);
  harness.feed(tokens);
  EXPECT_FALSE(harness.cache().sync());
  harness.drain();
  harness.cache().drop_tier(Tier::kDevice);
  EXPECT_EQ(in_tier(harness.feed(tokens).report, Tier::kHost), 199u);
  EXPECT_EQ(harness.cache().health().state, StoreState::kOff);
  EXPECT_EQ(harness.cache().conversations(), nullptr);
}

TEST(BlockCacheTest, UseAndHitsComeBackAfterReopening) {
  MemoryStore store;
  CacheHarness harness({}, store);
  const auto tokens = CacheHarness::tokens(13, 129);
  harness.feed(tokens);
  harness.feed(tokens);
  harness.feed(tokens);
  harness.reopen();
  const auto rows = harness.cache().rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].hits, 2u);
  EXPECT_GT(rows[0].last_use_unix_us, 0);
  EXPECT_EQ(rows[1].parent, rows[0].hash);
  EXPECT_EQ(rows[0].tokens, std::vector<TokenId>(tokens.begin(), tokens.begin() + kSpan));
}

TEST(BlockCacheTest, RequestThatCanNeverFitIsRefusedByName) {
  MemoryStore store;
  CacheHarness harness({.device_slots = 4}, store);
  const auto tokens = CacheHarness::tokens(14, 64 * 5);
  const auto chain = harness.cache().open_chain(tokens, 0, tokens.size());
  ASSERT_FALSE(chain.ok());
  EXPECT_EQ(chain.error().code, ErrorCode::kInvalidArgument);
}

TEST(BlockCacheTest, LeasesOfOthersAreNeverEvicted) {
  MemoryStore store;
  CacheHarness harness({.device_slots = 4}, store);
  const auto tokens = CacheHarness::tokens(15, 64 * 3);
  auto held = harness.open_chain(tokens, 0);
  ASSERT_TRUE(held);
  const auto other = CacheHarness::tokens(16, 64 * 2);
  const auto refused = harness.cache().open_chain(other, 0, other.size());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kCapacity);
  held.reset();
  EXPECT_TRUE(harness.cache().open_chain(other, 0, other.size()).ok());
}

}  // namespace
}  // namespace ember::testing
