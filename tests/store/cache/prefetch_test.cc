// Blocks of waiting requests in host slots, beside a disk that takes nothing: whatever else needs
// a host slot finds one elsewhere, or gives something up; nothing waits for the waiting.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/store/cache/cache_harness.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;
constexpr size_t kHost = static_cast<size_t>(Tier::kHost);

// Half of the host slots are kept for a request that waits. `elsewhere` is on the disk only.
struct FullHouse {
  explicit FullHouse(uint64_t seed)
      : harness({.sim_seed = seed, .device_slots = 48, .host_slots = 8,
                 .tuning = {.retry_us = 1}}, store) {
    for (const std::vector<TokenId>& stored : {waiting, elsewhere}) harness.feed(stored, false);
    harness.sync();
    harness.cache().drop_tier(Tier::kDevice);
    harness.cache().drop_tier(Tier::kHost);
    prefetch = harness.cache().prefetch(waiting, 4 * kSpan);
    harness.drain();
    expect_kept();
  }
  void refuse_writes() {
    store.before_put = [](const BlockHash&) {
      return Status(ErrorCode::kIo, "the drive refuses everything");
    };
  }
  // Chains whose fronts stay in host slots, refused by the disk, under blocks of the device.
  void fill_with_refused_blocks() {
    for (uint64_t chain = 1; chain <= 4; ++chain) {
      harness.feed(CacheHarness::tokens(chain, 8 * kSpan + 1), false);
      harness.sync();
      EXPECT_FALSE(harness.sync_status().ok());
      harness.cache().drop_tier(Tier::kDevice);  // where a lower tier has a copy
      expect_kept();
    }
  }
  void expect_kept() {
    EXPECT_EQ(prefetch->blocks_in_ram(), 4u);
    const BlockCacheStats stats = harness.cache().stats();
    EXPECT_EQ(stats.prefetch_slots, 4u);
    EXPECT_EQ(stats.prefetched_blocks, 4u);
    EXPECT_EQ(harness.cache().match(waiting).tokens_by_tier[kHost], 4 * kSpan);
  }

  MemoryStore store;
  const std::vector<TokenId> waiting = CacheHarness::tokens(50, 4 * kSpan + 1);
  const std::vector<TokenId> elsewhere = CacheHarness::tokens(60, 3 * kSpan + 1);
  CacheHarness harness;
  std::unique_ptr<Prefetch> prefetch;
};

TEST(PrefetchTest, WhatTheDiskRefusesLeavesPrefetchedSlotsAlone) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    FullHouse house(seed);
    house.refuse_writes();
    house.fill_with_refused_blocks();
    EXPECT_EQ(house.harness.cache().stats().offload_failures, 32u) << "every block, once";
    house.harness.expect_sound();

    house.store.before_put = nullptr;
    const auto fresh = CacheHarness::tokens(9, 6 * kSpan + 1);
    house.harness.feed(fresh, false);
    house.harness.sync();
    EXPECT_TRUE(house.harness.sync_status().ok()) << house.harness.sync_status().error().message;
    house.expect_kept();

    const CacheHarness::Outcome turn = house.harness.feed(house.waiting, false);
    EXPECT_EQ(turn.report.restored_tokens[kHost], 4 * kSpan) << "what it was kept for";
    house.prefetch.reset();
    EXPECT_EQ(house.harness.cache().stats().prefetch_slots, 0u);
    house.harness.reopen();
    EXPECT_EQ(house.harness.feed(fresh).restored, 6 * kSpan);
    house.harness.expect_sound();
  }
}

TEST(PrefetchTest, ARestoreBesideThemFindsAHostSlot) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    FullHouse house(seed);
    house.refuse_writes();
    house.fill_with_refused_blocks();
    const CacheHarness::Outcome outcome = house.harness.feed(house.elsewhere, false);
    EXPECT_EQ(outcome.report.restored_tokens[static_cast<size_t>(Tier::kDisk)], 3 * kSpan);
    EXPECT_EQ(house.harness.cache().stats().late_blocks, 0u);
    house.expect_kept();
    house.prefetch.reset();
    house.harness.expect_sound();
  }
}

// On threads: every worker that reads is held up, and what lies in RAM comes all the same.
TEST(HungReadsTest, BlocksInRamAreRestoredMeanwhile) {
  MemoryStore store;
  CacheHarness harness({.sim_seed = 0, .device_slots = 48, .host_slots = 24}, store);
  const auto in_ram = CacheHarness::tokens(1, 4 * kSpan + 1);
  const auto on_disk = CacheHarness::tokens(2, 12 * kSpan + 1);
  harness.feed(on_disk, false);
  harness.sync();
  harness.cache().drop_tier(Tier::kDevice);
  harness.cache().drop_tier(Tier::kHost);
  harness.feed(in_ram, false);
  harness.sync();
  harness.cache().drop_tier(Tier::kDevice);
  std::atomic<bool> asleep{true};
  store.before_read = [&asleep](const BlockHash&, uint32_t) -> Status {
    while (asleep.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {};
  };
  const std::unique_ptr<Chain> hung = harness.open_chain(on_disk, 12 * kSpan);
  const CacheHarness::Outcome outcome = harness.feed(in_ram, false);
  EXPECT_EQ(outcome.report.restored_tokens[kHost], 4 * kSpan);
  EXPECT_FALSE(hung->ready());
  asleep = false;
  harness.wait_ready(*hung);
  EXPECT_EQ(hung->length(), 12 * kSpan);
  harness.drain();
}

}  // namespace
}  // namespace ember::testing
