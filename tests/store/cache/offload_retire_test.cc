// Epochs that go with the coldest of their blocks: who stays, and that nothing is ever stranded.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/prng.h"
#include "tests/store/cache/cache_harness.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;

MemoryStore& with_epochs(MemoryStore& store, uint64_t limit_bytes) {
  store.limit_bytes = limit_bytes;
  store.epoch_blocks = 4;
  return store;
}

// What the cache knows to be on the disk is what lies there, to the byte.
void expect_accounts(CacheHarness& harness, MemoryStore& store) {
  const BlockLedger& ledger = harness.cache().ledger();
  std::set<BlockHash> known;
  uint64_t bytes = 0;
  for (BlockId block : ledger.index().all_blocks()) {
    if (!ledger.entry(block).in(Tier::kDisk) || ledger.is_tail(block)) continue;
    known.insert(ledger.entry(block).hash);
    bytes += ledger.notes(block).stored_bytes;
  }
  MutexLock lock(store.mutex);
  std::set<BlockHash> stored;
  uint64_t stored_bytes = 0;
  for (const auto& [hash, block] : store.blocks) {
    stored.insert(hash);
    stored_bytes += block.record.stored_bytes();
  }
  EXPECT_EQ(known, stored);
  EXPECT_EQ(bytes, stored_bytes);
}

TEST(OffloadRetireTest, WhatComesOnceIsNeverPutAgain) {
  MemoryStore store;
  CacheHarness harness({.device_slots = 8, .host_slots = 8}, with_epochs(store, 500'000));
  for (uint64_t i = 0; i < 100; ++i) {
    harness.feed(CacheHarness::tokens(1000 + i, kSpan * 4), false);
    harness.sync();
    harness.expect_sound();
    EXPECT_LE(store.taken_bytes(), store.limit_bytes);
  }
  EXPECT_GT(harness.cache().stats().epoch_evictions, 0u);
  EXPECT_EQ(harness.cache().stats().offload_failures, 0u);
  EXPECT_EQ(store.rewritten_bytes, 0u);
  expect_accounts(harness, store);
}

TEST(OffloadRetireTest, WhatIsUsedOrPinnedIsPutAgain) {
  MemoryStore store;
  CacheHarness harness({.device_slots = 16, .host_slots = 8}, with_epochs(store, 250'000));
  const auto system = CacheHarness::tokens(1, kSpan);
  const auto pinned = CacheHarness::tokens(2, kSpan + 1);
  harness.feed(pinned, false);
  ASSERT_TRUE(harness.cache().pin(pinned, 3'600'000'000, {}).ok());
  harness.feed(CacheHarness::tokens(3, kSpan * 3), false);  // in one epoch with it
  harness.sync();
  for (uint64_t i = 0; i < 80; ++i) {
    auto tokens = CacheHarness::tokens(1000 + i, kSpan * 4);
    std::copy(system.begin(), system.end(), tokens.begin());
    const auto outcome = harness.feed(tokens, false);
    if (i > 0) {
      EXPECT_GE(outcome.matched, system.size());
    }
    harness.sync();
    harness.cache().drop_tier(Tier::kDevice);
    harness.cache().drop_tier(Tier::kHost);
    harness.expect_sound();
    EXPECT_EQ(harness.cache().match(pinned).tokens, pinned.size() - 1);
  }
  EXPECT_GT(store.rewritten_bytes, 0u);
  EXPECT_EQ(harness.cache().stats().offload_failures, 0u);
  expect_accounts(harness, store);
}

// Prompts that branch, tails, chains that stay open, pins that come and go, copies in RAM or not.
class RetireWorkload {
 public:
  explicit RetireWorkload(uint64_t seed)
      : prng_(seed),
        harness_({.sim_seed = seed, .device_slots = 24, .host_slots = 8},
                 with_epochs(store_, 150'000)) {}

  void run(size_t requests) {
    for (size_t i = 0; i < requests && !::testing::Test::HasFailure(); ++i) {
      event();
      check();
    }
    open_.clear();
    harness_.sync();
    check();
    expect_accounts(harness_, store_);
    reopen();
    harness_.drain();
    check();
    expect_accounts(harness_, store_);
  }
  uint64_t given_up() const { return given_up_; }
  uint64_t rewritten() const { return store_.rewritten_bytes; }

 private:
  struct Open {
    std::vector<TokenId> tokens;
    std::unique_ptr<Chain> chain;
  };

  void reopen() {
    given_up_ += harness_.cache().stats().epoch_evictions;
    harness_.reopen();
  }

  std::vector<TokenId> prompt() {
    auto tokens = CacheHarness::tokens(prng_.below(200), 1 + prng_.below(kSpan * 7));
    const auto trunk = CacheHarness::tokens(100 + prng_.below(3), kSpan * (1 + prng_.below(5)));
    if (prng_.below(3) > 0) {
      std::copy_n(trunk.begin(), std::min(trunk.size(), tokens.size()), tokens.begin());
    }
    return tokens;
  }

  void event() {
    switch (prng_.below(12)) {
      case 0: harness_.cache().drop_tier(Tier::kDevice); break;
      case 1: harness_.cache().drop_tier(Tier::kHost); break;
      case 2: static_cast<void>(harness_.cache().pin(prompt(), 1'000, {})); break;
      case 3:
        if (!open_.empty()) open_.erase(open_.begin());
        break;
      case 4: {
        const auto tokens = prompt();
        if (open_.size() > 1) break;
        open_.push_back({tokens, harness_.open_chain(
                                     tokens, harness_.cache().match(tokens).tokens)});
        if (open_.back().chain != nullptr) harness_.wait_ready(*open_.back().chain);
        break;
      }
      case 5:
        if (prng_.below(8) > 0) break;
        open_.clear();
        reopen();
        break;
      default: harness_.feed(prompt(), prng_.below(2) == 0); break;
    }
    prng_.below(3) == 0 ? harness_.sync() : harness_.drain();
  }

  // What an open chain has restored can still be read; the oracle's rows are compared by feed().
  void check() {
    harness_.expect_sound();
    EXPECT_LE(store_.taken_bytes(), store_.limit_bytes);
    for (const Open& open : open_) {
      if (open.chain == nullptr) continue;
      harness_.expect_rows(*open.chain, open.tokens, open.chain->length());
    }
  }

  Prng prng_;
  MemoryStore store_;
  CacheHarness harness_;
  std::vector<Open> open_;
  uint64_t given_up_ = 0;
};

TEST(OffloadRetireTest, NothingIsStrandedWhateverGoes) {
  uint64_t given_up = 0, rewritten = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    RetireWorkload workload(seed);
    workload.run(200);
    given_up += workload.given_up();
    rewritten += workload.rewritten();
    if (HasFailure()) return;
  }
  EXPECT_GT(given_up, 200u);
  EXPECT_GT(rewritten, 0u);
}

}  // namespace
}  // namespace ember::testing
