// Reopening in small steps: what a prompt gets while they run, and that the end is the same.
#include <gtest/gtest.h>

#include "base/prng.h"
#include "tests/store/cache/cache_harness.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;

HarnessOptions in_steps_of(size_t records, uint64_t sim_seed = 1) {
  HarnessOptions options;
  options.sim_seed = sim_seed;
  options.tuning.records_at_opening = records;
  options.tuning.records_of_a_step = records;
  options.device_slots = 64;
  return options;
}

std::vector<TokenId> branch(uint64_t trunk, size_t shared, uint64_t seed, size_t count) {
  auto tokens = CacheHarness::tokens(trunk, shared);
  const auto own = CacheHarness::tokens(seed, count);
  tokens.insert(tokens.end(), own.begin(), own.end());
  return tokens;
}

// A trunk of 4 blocks and `branches` of 6 more with a tail.
void fill(CacheHarness& harness, size_t branches) {
  for (size_t i = 0; i < branches; ++i) {
    harness.feed(branch(1, kSpan * 4, 100 + i, kSpan * 6 + 9));
    harness.drain();
  }
  harness.sync();
  harness.drain();
}

void load(CacheHarness& harness) {
  for (int i = 0; i < 100'000 && harness.cache().loading(); ++i) harness.step();
  ASSERT_FALSE(harness.cache().loading());
}

TEST(ReopeningTest, PromptHitsBeforeTheStoreIsRead) {
  MemoryStore store;
  CacheHarness harness(in_steps_of(1), store);
  fill(harness, 5);
  harness.reopen();
  ASSERT_TRUE(harness.cache().loading());
  const auto tokens = branch(1, kSpan * 4, 103, kSpan * 6 + 9);
  const auto outcome = harness.feed(tokens);
  EXPECT_EQ(outcome.restored, tokens.size() - 1);  // the tail too
  EXPECT_GE(harness.cache().stats().looked_up_blocks, 8u);
  load(harness);
  harness.drain();
  harness.expect_sound();
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_EQ(stats.blocks[static_cast<size_t>(Tier::kDisk)], store.blocks.size());
  EXPECT_EQ(stats.foreign_blocks, 0u);
}

// However small the steps are, the index ends as if it had been read at once.
TEST(ReopeningTest, StepsOfAnySizeGiveTheSameIndex) {
  MemoryStore store;
  {
    CacheHarness harness(in_steps_of(1000), store);
    fill(harness, 6);
  }
  std::vector<BlockCache::Row> expected;
  for (const size_t records : {1000u, 1u, 2u, 7u}) {
    for (const uint64_t seed : {1u, 2u}) {
      CacheHarness harness(in_steps_of(records, seed), store);
      EXPECT_EQ(harness.cache().loading(), records < 1000);
      load(harness);
      harness.expect_sound();
      const std::vector<BlockCache::Row> rows = harness.cache().rows();
      if (expected.empty()) expected = rows;
      ASSERT_EQ(rows.size(), expected.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i].hash, expected[i].hash);
        EXPECT_EQ(rows[i].hits, expected[i].hits);
        EXPECT_EQ(rows[i].last_use_unix_us, expected[i].last_use_unix_us);
        EXPECT_EQ(rows[i].stored_bytes, expected[i].stored_bytes);
      }
      EXPECT_EQ(harness.cache().stats().tail_records, 6u);
    }
  }
}

// Threads read several shares at once from a real store, while requests ask for blocks, write some
// and evict none: nothing is lost, and each request gets what was stored for it.
TEST(ReopeningTest, StepsOnThreadsOfARealStoreFindAll) {
  for (const bool encrypted : {false, true}) {
    const TempFolder folder;
    MemoryStore unused;
    HarnessOptions options = in_steps_of(1, 0);
    options.path = folder / "store";
    options.encryption = {encrypted, folder / "master.key"};
    CacheHarness harness(options, unused);
    const auto prompt = [](uint64_t number) {
      return branch(1 + number % 2, kSpan * 4, 100 + number, kSpan * 6 + 9);
    };
    const auto tenant = [](uint64_t number) {
      return RequestScope{.tenant = number % 3 == 0 ? "" : "tenant" + std::to_string(number % 3)};
    };
    for (uint64_t number = 0; number < 12; ++number) {
      harness.feed(prompt(number), true, true, tenant(number));
      harness.drain();
    }
    harness.sync();
    for (uint64_t round = 0; round < 4; ++round) {
      harness.reopen();
      ASSERT_TRUE(harness.cache().loading());
      for (uint64_t number = 0; number < 12; number += 1 + round) {
        const auto tokens = prompt(number);
        const auto outcome = harness.feed(tokens, true, true, tenant(number));
        EXPECT_EQ(outcome.restored, tokens.size() - 1) << number << " of round " << round;
        harness.feed(CacheHarness::tokens(1000 + 100 * round + number, kSpan * 2), false);
      }
      if (round % 2 != 0) continue;  // closes wherever the walk has come to
      load(harness);
      harness.drain();
      harness.expect_sound();
      EXPECT_EQ(harness.cache().stats().dedup_mismatch, 0u);
      EXPECT_EQ(harness.cache().stats().stranded, 0u);
    }
  }
}

// What is computed again while it is on the disk and not yet known is found there, not written.
TEST(ReopeningTest, CommitsMeetTheirRecords) {
  MemoryStore store;
  CacheHarness harness(in_steps_of(1), store);
  const auto tokens = CacheHarness::tokens(5, kSpan * 8);
  harness.feed(tokens, false);
  harness.sync();
  harness.reopen();
  ASSERT_TRUE(harness.cache().loading());
  const uint64_t puts = store.puts;
  harness.feed(tokens, false, false);
  harness.sync();
  load(harness);
  harness.drain();
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_EQ(store.puts, puts);
  EXPECT_EQ(stats.dedup_mismatch, 0u);
  EXPECT_EQ(stats.blocks[static_cast<size_t>(Tier::kDisk)], 8u);
  harness.expect_sound();
}

// A full disk waits for the end of the reading: before it, a leaf may be none.
TEST(ReopeningTest, NothingIsEvictedUntilAllIsKnown) {
  MemoryStore store;
  CacheHarness harness(in_steps_of(1), store);
  fill(harness, 4);
  store.limit_bytes = store.stored_bytes();
  harness.reopen();
  const auto tokens = CacheHarness::tokens(9, kSpan * 3);
  harness.feed(tokens, false);
  for (int i = 0; i < 20; ++i) harness.step();
  if (harness.cache().loading()) {
    EXPECT_EQ(harness.cache().stats().evicted_blocks, 0u);
  }
  load(harness);
  harness.sync();
  harness.drain();
  EXPECT_GT(harness.cache().stats().evicted_blocks, 0u);
  EXPECT_EQ(harness.cache().stats().offload_failures, 0u);
  harness.expect_sound();
}

TEST(ReopeningTest, RecordsWithoutAParentAreSetAside) {
  MemoryStore store;
  CacheHarness harness(in_steps_of(2), store);
  const auto tokens = CacheHarness::tokens(6, kSpan * 8 + 5);
  harness.feed(tokens);
  harness.sync();
  harness.close();
  store.blocks.erase(harness.hash_of(tokens, 3));
  harness.reopen();
  load(harness);
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_EQ(stats.blocks[static_cast<size_t>(Tier::kDisk)], 3u);
  EXPECT_EQ(stats.foreign_blocks, 4u);
  EXPECT_EQ(stats.stranded, 4u);  // told, for it never happens by itself
  EXPECT_EQ(stats.tail_records, 0u);
}

TEST(ReopeningTest, FailedReadingLeavesTheStoreReadable) {
  MemoryStore store;
  CacheHarness harness(in_steps_of(1), store);
  fill(harness, 2);
  harness.close();
  int steps = 0;
  store.before_scan = [&]() -> Status {
    if (++steps < 4) return {};
    return {ErrorCode::kIo, "memory disk: no more"};
  };
  harness.reopen();
  load(harness);
  EXPECT_EQ(harness.cache().health().reason, "memory disk: no more");
  const size_t before = store.blocks.size();
  harness.feed(CacheHarness::tokens(44, kSpan * 3), false);
  harness.drain();
  EXPECT_EQ(store.blocks.size(), before);
}

// Requests, closings in the middle and evictions, whatever order the steps take.
TEST(ReopeningTest, ChurnWithReopeningsStaysSound) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    MemoryStore store;
    store.limit_bytes = 60'000;
    CacheHarness harness(in_steps_of(1 + seed % 3, seed), store);
    Prng random(seed);
    for (int i = 0; i < 40; ++i) {
      const auto tokens = branch(1 + random.below(2), kSpan * 4, 200 + random.below(8),
                                 kSpan * random.below(6) + 1 + random.below(60));
      ASSERT_TRUE(harness.feed(tokens, random.below(2) == 0).opened);
      for (uint64_t steps = random.below(20); steps > 0; --steps) harness.step();
      if (random.below(5) == 0) harness.reopen();
    }
    load(harness);
    harness.drain();
    harness.expect_sound();
    EXPECT_EQ(harness.cache().stats().dedup_mismatch, 0u);
  }
}

}  // namespace
}  // namespace ember::testing
