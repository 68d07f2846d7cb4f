// Pressure: pools of a few slots, a disk of a few blocks, many requests at once, by seed.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/prng.h"
#include "tests/store/cache/cache_harness.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;

TEST(ChurnTest, TinyPoolsStillServeLongRestores) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    MemoryStore store;
    CacheHarness harness({.sim_seed = seed, .device_slots = 12, .host_slots = 2}, store);
    const auto tokens = CacheHarness::tokens(seed, kSpan * 10 + 9);
    harness.feed(tokens);
    harness.sync();
    harness.reopen();
    const auto outcome = harness.feed(tokens);
    EXPECT_EQ(outcome.restored, tokens.size() - 1);
    harness.sync();
    harness.expect_sound();
  }
}

TEST(ChurnTest, FullDiskEvictsLeavesAndGoesOn) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    MemoryStore store;
    store.limit_bytes = 100'000;
    CacheHarness harness({.sim_seed = seed, .device_slots = 16, .host_slots = 8}, store);
    for (uint64_t i = 0; i < 60; ++i) {
      // A third of them share the system prompt of two blocks.
      auto tokens = CacheHarness::tokens(seed * 1000 + i, kSpan * 5 + i % 64);
      const auto system = CacheHarness::tokens(seed, kSpan * 2);
      if (i % 3 == 0) std::copy(system.begin(), system.end(), tokens.begin());
      const auto outcome = harness.feed(tokens);
      ASSERT_TRUE(outcome.opened);
      if (i % 3 == 0 && i > 0) {
        EXPECT_GE(outcome.restored, kSpan * 2) << "shared, so used last";
      }
      i % 7 == 0 ? harness.sync() : harness.drain();
      harness.expect_sound();
      EXPECT_LE(store.stored_bytes(), store.limit_bytes);
    }
    harness.sync();
    EXPECT_GT(harness.cache().stats().evicted_blocks, 0u);
    EXPECT_EQ(harness.cache().stats().offload_failures, 0u);
    harness.reopen();
    harness.expect_sound();
    EXPECT_GE(harness.cache().match(CacheHarness::tokens(seed, kSpan * 2 + 1)).tokens, kSpan * 2);
  }
}

TEST(ChurnTest, ForeignRecordsGoFirst) {
  MemoryStore store;
  store.limit_bytes = 60'000;
  {
    CacheHarness other({.name_space = 9}, store);
    other.feed(CacheHarness::tokens(1, kSpan * 12));
    other.sync();
  }
  CacheHarness harness({}, store);
  EXPECT_EQ(harness.cache().stats().foreign_blocks, 12u);
  const auto mine = CacheHarness::tokens(2, kSpan * 8);
  harness.feed(mine);
  harness.sync();
  harness.feed(CacheHarness::tokens(3, kSpan * 8));
  harness.sync();
  EXPECT_LT(harness.cache().stats().foreign_blocks, 12u);
  EXPECT_EQ(harness.cache().match(mine).tokens, mine.size() - 1);
  harness.expect_sound();
}

// Several requests at once over shared prefixes, random steps between their parts, random losses of
// tiers, damage and reopenings. The oracle checks each restored row.
class RandomWorkload {
 public:
  RandomWorkload(uint64_t seed, uint64_t sim_seed)
      : prng_(seed),
        harness_({.sim_seed = sim_seed,
                  .layers_per_group = static_cast<uint32_t>(1 + seed % 3),
                  .device_slots = static_cast<uint32_t>(12 + seed % 9),
                  .host_slots = static_cast<uint32_t>(2 + seed % 7)},
                 store_) {
    store_.limit_bytes = 60'000 + seed % 5 * 30'000;
  }

  void run(int events) {
    for (int i = 0; i < events; ++i) event();
    open_.clear();
    harness_.sync();
    harness_.drain();
    harness_.expect_sound();
  }

 private:
  struct Open {
    std::vector<TokenId> tokens;
    std::unique_ptr<Chain> chain;
  };

  std::vector<TokenId> prompt() {
    const size_t length = 1 + prng_.below(kSpan * 4);
    auto tokens = CacheHarness::tokens(prng_.below(6), length);
    // Branches inside of blocks and at their ends.
    if (prng_.below(2) == 0) {
      const size_t keep = prng_.below(length);
      const auto other = CacheHarness::tokens(100 + prng_.below(3), length);
      std::copy(other.begin() + static_cast<std::ptrdiff_t>(keep), other.end(),
                tokens.begin() + static_cast<std::ptrdiff_t>(keep));
    }
    return tokens;
  }

  void open_one() {
    Open request;
    request.tokens = prompt();
    const size_t matched = harness_.cache().match(request.tokens).tokens;
    const size_t want = prng_.below(4) == 0 ? prng_.below(matched + 1) : matched;
    auto chain = harness_.cache().open_chain(request.tokens, want, request.tokens.size());
    if (!chain.ok()) {
      ASSERT_EQ(chain.error().code, ErrorCode::kCapacity);
      return;
    }
    request.chain = std::move(*chain);
    open_.push_back(std::move(request));
  }

  void finish_one() {
    const size_t index = prng_.below(open_.size());
    Open request = std::move(open_[index]);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
    if (prng_.below(5) == 0) return;  // cancelled, perhaps while restoring
    harness_.wait_ready(*request.chain);
    harness_.expect_rows(*request.chain, request.tokens, request.chain->length());
    harness_.compute(*request.chain, request.tokens);
    harness_.expect_rows(*request.chain, request.tokens, request.tokens.size());
    if (prng_.below(2) == 0) harness_.cache().commit_tail(*request.chain);
  }

  void damage_one() {
    MutexLock lock(store_.mutex);
    if (store_.blocks.empty()) return;
    auto block = store_.blocks.begin();
    std::advance(block, static_cast<std::ptrdiff_t>(prng_.below(store_.blocks.size())));
    std::string& payload = block->second.payloads[0];
    payload[prng_.below(payload.size())] ^= 4;
  }

  void event() {
    switch (prng_.below(16)) {
      case 0: harness_.cache().drop_tier(Tier::kDevice); break;
      case 1: harness_.cache().drop_tier(Tier::kHost); break;
      case 2: if (prng_.below(4) == 0) damage_one(); break;
      case 3: harness_.sync(); break;
      case 4:
        if (prng_.below(6) == 0) {
          open_.clear();
          harness_.reopen();
        }
        break;
      case 5: harness_.expect_sound(); break;
      case 6: case 7: case 8: case 9:
        if (open_.size() < 4) open_one();
        break;
      case 10: case 11: case 12:
        if (!open_.empty()) finish_one();
        break;
      default: harness_.step(); break;
    }
  }

  Prng prng_;
  MemoryStore store_;
  CacheHarness harness_;
  std::vector<Open> open_;
};

TEST(RandomWorkloadTest, EveryRestoredRowIsRightOnASimulatedDevice) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomWorkload(seed, seed).run(400);
    if (HasFailure()) return;
  }
}

TEST(RandomWorkloadTest, EveryRestoredRowIsRightOnTheCpu) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    RandomWorkload(seed, 0).run(300);
    if (HasFailure()) return;
  }
}

// Blocks that the disk refused stay in host slots while their children are on the device alone.
// With every host slot taken so, what the disk would take now could never come down.
TEST(ChurnTest, WhatWasNeverStoredDoesNotKeepOthersFromTheDisk) {
  MemoryStore store;
  CacheHarness harness({.device_slots = 48, .host_slots = 4, .tuning = {.retry_us = 1}}, store);
  store.before_put = [](const BlockHash&) {
    return Status(ErrorCode::kIo, "the drive refuses everything");
  };
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    harness.feed(CacheHarness::tokens(seed, 8 * kSpan + 1));
    harness.sync();
    harness.cache().drop_tier(Tier::kDevice);  // where a lower tier has a copy
  }
  store.before_put = nullptr;
  const auto tokens = CacheHarness::tokens(9, 6 * kSpan + 1);
  harness.feed(tokens);
  harness.sync();
  EXPECT_TRUE(harness.sync_status().ok()) << harness.sync_status().error().message;
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens).restored, 6 * kSpan);
  harness.expect_sound();
}

}  // namespace
}  // namespace ember::testing
