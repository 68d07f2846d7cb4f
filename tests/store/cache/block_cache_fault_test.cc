// Bad luck on the disk: each becomes a miss, a counter and a recompute, never a wrong byte.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <utility>

#include "tests/store/cache/cache_harness.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;
constexpr size_t kLength = kSpan * 6 + 20;

// A store that holds one conversation of six blocks and a tail.
void fill(MemoryStore& store, const std::vector<TokenId>& tokens) {
  CacheHarness harness({}, store);
  harness.feed(tokens);
  harness.sync();
}

class DamageTest : public ::testing::TestWithParam<size_t> {};

TEST_P(DamageTest, RestoreEndsBeforeTheDamageAndRecomputeHealsIt) {
  const size_t damaged = GetParam();
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    MemoryStore store;
    const auto tokens = CacheHarness::tokens(1, kLength);
    fill(store, tokens);
    CacheHarness harness({.sim_seed = seed}, store);
    store.corrupt(harness.hash_of(tokens, damaged), static_cast<uint32_t>(seed % 3));
    const auto outcome = harness.feed(tokens);
    EXPECT_EQ(outcome.matched, kLength - 1);
    EXPECT_EQ(outcome.restored, damaged * kSpan);
    EXPECT_EQ(outcome.report.damaged_blocks, 1u);
    EXPECT_EQ(harness.cache().stats().damaged_blocks, 1u);
    harness.sync();
    EXPECT_EQ(harness.cache().stats().holes, 0u) << "healed by the commit";
    harness.expect_sound();
    harness.reopen();
    EXPECT_EQ(harness.feed(tokens).restored, kLength - 1) << "and on the disk";
  }
}
INSTANTIATE_TEST_SUITE_P(EachBlock, DamageTest, ::testing::Values(0, 1, 3, 5, 6));

TEST(FaultyDiskTest, HoleIsCountedAndNothingBelowItIsStranded) {
  MemoryStore store;
  const auto tokens = CacheHarness::tokens(1, kLength);
  fill(store, tokens);
  CacheHarness harness({}, store);
  store.corrupt(harness.hash_of(tokens, 2), 0);
  auto chain = harness.open_chain(tokens, tokens.size() - 1);
  harness.wait_ready(*chain);
  EXPECT_EQ(chain->length(), 2 * kSpan);
  chain.reset();
  harness.drain();
  EXPECT_EQ(harness.cache().stats().holes, 1u);
  EXPECT_EQ(harness.cache().match(tokens).tokens, 2 * kSpan);
  harness.expect_sound();
}

TEST(FaultyDiskTest, ReadErrorIsAMiss) {
  MemoryStore store;
  const auto tokens = CacheHarness::tokens(2, kLength);
  fill(store, tokens);
  CacheHarness harness({}, store);
  const BlockHash bad = harness.hash_of(tokens, 4);
  store.before_read = [&](const BlockHash& hash, uint32_t group) -> Status {
    if (hash == bad && group == 2) return Error{ErrorCode::kIo, "the weather"};
    return {};
  };
  EXPECT_EQ(harness.feed(tokens).restored, 4 * kSpan);
  store.before_read = nullptr;
  harness.sync();
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens).restored, kLength - 1);
}

TEST(FaultyDiskTest, BlocksSharedByTwoRestoresFailForBoth) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    MemoryStore store;
    const auto tokens = CacheHarness::tokens(3, kLength);
    fill(store, tokens);
    CacheHarness harness({.sim_seed = seed}, store);
    store.corrupt(harness.hash_of(tokens, 3), 1);
    auto first = harness.open_chain(tokens, tokens.size() - 1);
    auto second = harness.open_chain(tokens, tokens.size() - 1);
    ASSERT_TRUE(first && second);
    harness.wait_ready(*first);
    harness.wait_ready(*second);
    for (Chain* chain : {first.get(), second.get()}) {
      ASSERT_LE(chain->length(), 3 * kSpan);
      harness.expect_rows(*chain, tokens, chain->length());
    }
    // Each computes into slots of its own.
    for (size_t i = 3; i < first->block_table().size(); ++i) {
      EXPECT_NE(first->block_table()[i], second->block_table()[i]);
    }
    harness.compute(*first, tokens);
    harness.compute(*second, tokens);
    harness.expect_rows(*first, tokens, kLength);
    harness.expect_rows(*second, tokens, kLength);
    first.reset();
    second.reset();
    harness.sync();
    harness.expect_sound();
    harness.reopen();
    EXPECT_EQ(harness.feed(tokens).restored, kLength - 1);
  }
}

TEST(FaultyDiskTest, LateReadsEndWithTheDeadlineAndTheirSlotsComeBack) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    MemoryStore store;
    const auto tokens = CacheHarness::tokens(4, kLength);
    fill(store, tokens);
    ManualClock clock;
    CacheHarness harness({.sim_seed = seed, .clock = &clock}, store);
    auto chain = harness.open_chain(tokens, tokens.size() - 1);
    ASSERT_TRUE(chain);
    for (uint64_t i = 0; i < seed; ++i) harness.step();
    clock.advance_us(CacheTuning{}.restore_deadline_us + 1);
    harness.cache().tick();
    harness.wait_ready(*chain);
    EXPECT_LT(chain->length(), kLength);
    harness.expect_rows(*chain, tokens, chain->length());
    harness.compute(*chain, tokens);
    harness.drain();  // the late reads end here, and touch nothing of the chain's
    harness.expect_rows(*chain, tokens, kLength);
    chain.reset();
    EXPECT_EQ(harness.cache().stats().damaged_blocks, 0u);
    EXPECT_EQ(harness.feed(tokens).restored, kLength - 1);
    harness.expect_sound();
  }
}

TEST(FaultyDiskTest, BusyDiskIsAskedAgain) {
  MemoryStore store;
  std::atomic<int> puts{0};
  store.before_put = [&](const BlockHash&) -> Status {
    if (++puts % 3 != 0) return Error{ErrorCode::kBusy, "a pause"};
    return {};
  };
  CacheTuning tuning;
  tuning.retry_us = 1;
  CacheHarness harness({.tuning = tuning}, store);
  const auto tokens = CacheHarness::tokens(5, kLength);
  harness.feed(tokens);
  harness.sync();
  EXPECT_EQ(harness.cache().stats().durable_blocks, 6u);
  EXPECT_EQ(harness.cache().stats().offload_failures, 0u);
  harness.expect_sound();
}

TEST(FaultyDiskTest, DiskThatNeverWritesCostsNoRequest) {
  MemoryStore store;
  store.before_put = [](const BlockHash&) -> Status {
    return Error{ErrorCode::kIo, "no space left"};
  };
  CacheTuning tuning;
  tuning.retry_us = 1;
  CacheHarness harness({.device_slots = 8, .host_slots = 4, .tuning = tuning}, store);
  for (uint64_t seed = 10; seed < 30; ++seed) {
    EXPECT_TRUE(harness.feed(CacheHarness::tokens(seed, kLength)).opened);
  }
  harness.sync();
  EXPECT_GT(harness.cache().stats().offload_failures, 0u);
  EXPECT_NE(harness.cache().health().reason.find("no space left"), std::string::npos);
  EXPECT_EQ(harness.cache().health().state, StoreState::kDegraded);
  harness.expect_sound();
  store.before_put = nullptr;
  harness.feed(CacheHarness::tokens(99, kLength));
  harness.sync();
  EXPECT_EQ(harness.cache().health().reason, "");
  EXPECT_EQ(harness.cache().health().state, StoreState::kOk);
}

TEST(FaultyDiskTest, OnlyWhatWasFlushedIsReportedDurable) {
  MemoryStore store;
  const auto tokens = CacheHarness::tokens(6, kLength);
  CacheHarness harness({}, store);
  harness.feed(tokens, false);
  harness.drain();
  EXPECT_EQ(harness.cache().stats().offloaded_blocks, 6u);
  EXPECT_EQ(harness.cache().stats().durable_blocks, 0u);
  harness.sync();
  EXPECT_EQ(harness.cache().stats().durable_blocks, 6u);
}

TEST(FaultyDiskTest, StoreWhoseTailsCannotBeListedIsNotUsedAtAll) {
  MemoryStore store;
  const auto tokens = CacheHarness::tokens(12, kLength);
  fill(store, tokens);
  store.before_list_tails = []() -> Status { return Error{ErrorCode::kIo, "the weather"}; };
  CacheHarness harness({}, store);
  EXPECT_EQ(harness.cache().health().state, StoreState::kUnusable);
  EXPECT_EQ(harness.feed(tokens).matched, 0u);
  EXPECT_EQ(harness.cache().stats().stranded, 0u);
}

TEST(FaultyDiskTest, EvictedBlocksThatCouldNotBeErasedAreErasedLater) {
  MemoryStore store;
  store.limit_bytes = 48 << 10;
  std::atomic<int> erasures{0};
  store.before_erase = [&]() -> Status {
    if (++erasures % 2 == 1) return Error{ErrorCode::kIo, "the weather"};
    return {};
  };
  CacheHarness harness({}, store);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    harness.feed(CacheHarness::tokens(seed, kSpan * 2), false);
    harness.sync();
    harness.drain();
    const BlockCacheStats stats = harness.cache().stats();
    const size_t known = stats.blocks[static_cast<size_t>(Tier::kDisk)] + stats.foreign_blocks;
    ASSERT_EQ(store.blocks.size(), known) << "a record that nothing would ever erase, " << seed;
  }
  EXPECT_GT(erasures, 4);
  EXPECT_GT(harness.cache().stats().evicted_blocks, 0u);
}

TEST(FaultyDiskTest, BlocksThatTheDiskLostAreNotDurableUntilTheyAreWrittenAgain) {
  MemoryStore store;
  bool lose = true;
  store.before_flush = [&]() -> Status {
    if (!std::exchange(lose, false)) return {};
    store.lose_unflushed();
    return Error{ErrorCode::kCancelled, "six blocks were lost"};
  };
  const auto tokens = CacheHarness::tokens(11, kLength);
  CacheHarness harness({}, store);
  harness.feed(tokens);
  const Ticket ticket = harness.cache().sync();
  ASSERT_TRUE(ticket);
  Status told;
  std::array<Completion, 1> done;
  for (bool waiting = true; waiting && harness.device().wait_any(0, done) > 0;) {
    if (!harness.cache().handle(done[0])) {
      told = done[0].status;
      waiting = false;
    }
  }
  EXPECT_FALSE(told.ok()) << "who waited for durability is told";
  EXPECT_EQ(harness.cache().stats().durable_blocks, 0u);
  harness.sync();
  EXPECT_EQ(harness.cache().stats().durable_blocks, 6u);
  harness.expect_sound();
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens).restored, kLength - 1);
}

TEST(FaultyDiskTest, TurnEndIsFlushedWhenNothingElseRuns) {
  MemoryStore store;
  ManualClock clock;
  CacheHarness harness({.clock = &clock}, store);
  harness.feed(CacheHarness::tokens(7, kLength));
  harness.drain();
  EXPECT_EQ(store.flushes, 0u);
  clock.advance_us(kIdleFlushUs);
  harness.cache().tick();
  harness.drain();
  EXPECT_EQ(store.flushes, 1u);
}

TEST(FaultyDiskTest, PowerCutLosesOnlyWhatWasNotDurable) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    MemoryStore store;
    const auto tokens = CacheHarness::tokens(8, kLength);
    size_t durable = 0;
    MemoryStore after;
    {
      CacheHarness harness({.sim_seed = seed}, store);
      const auto half = static_cast<std::ptrdiff_t>(kSpan * 3 + 7);
      harness.feed({tokens.begin(), tokens.begin() + half});
      harness.sync();
      durable = kSpan * 3 + 7;
      harness.feed(tokens);
      for (uint64_t i = 0; i < seed; ++i) harness.step();
      // What a new process would find now.
      MutexLock lock(store.mutex);
      after.blocks = store.blocks;
      after.tails = store.tails;
    }
    after.lose_unflushed();
    CacheHarness harness({.sim_seed = seed}, after);
    EXPECT_GE(harness.feed(tokens).restored, durable);
    harness.sync();
    harness.expect_sound();
  }
}

TEST(FaultyDiskTest, ReadOnlyStoreIsReadAndNeverWritten) {
  MemoryStore store;
  const auto tokens = CacheHarness::tokens(9, kLength);
  fill(store, tokens);
  store.before_put = [](const BlockHash&) -> Status {
    ADD_FAILURE() << "a write";
    return {};
  };
  CacheHarness harness({.writable = false}, store);
  EXPECT_EQ(harness.feed(tokens).restored, kLength - 1);
  EXPECT_TRUE(harness.feed(CacheHarness::tokens(10, kLength)).opened);
  EXPECT_FALSE(harness.cache().sync());
  harness.drain();
}

}  // namespace
}  // namespace ember::testing
