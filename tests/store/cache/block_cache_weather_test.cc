// A disk in bad weather under a whole cache: every failure is a miss and a count, nothing waits
// without bound, and health clears when the weather does.
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/prng.h"
#include "tests/store/cache/cache_harness.h"
#include "tests/support/faulty_tier.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;
constexpr size_t kLength = kSpan * 6 + 20;

// Requests over a few shared prompts through a bad disk; each restored row is checked.
void live_through(uint64_t seed, uint64_t sim_seed, int requests) {
  MemoryStore store;
  store.limit_bytes = 90'000;
  auto weather = std::make_shared<TierWeather>();
  weather->seed = seed;
  weather->failing_reads = weather->short_reads = weather->corrupt_reads = 30;
  weather->late_reads = sim_seed == 0 ? 100 : 0;
  weather->failing_writes = weather->busy_writes = 150;
  weather->failing_flushes = 300;
  CacheTuning tuning;
  tuning.retry_us = 1;
  CacheHarness harness(
      {.sim_seed = sim_seed,
       .device_slots = 16,
       .host_slots = 6,
       .tuning = tuning,
       .around_disk =
           [weather](std::unique_ptr<DiskTier> tier) {
             return make_faulty_tier(std::move(tier), weather);
           }},
      store);
  Prng prng(seed);
  for (int i = 0; i < requests; ++i) {
    auto tokens = CacheHarness::tokens(prng.below(5), 1 + prng.below(kSpan * 6));
    EXPECT_TRUE(harness.feed(tokens, prng.below(2) == 0).opened);
    if (prng.below(4) == 0) harness.cache().drop_tier(Tier::kDevice);
    if (prng.below(4) == 0) harness.cache().drop_tier(Tier::kHost);
    if (prng.below(6) == 0) harness.sync();
    harness.cache().check_invariants();
    EXPECT_EQ(harness.cache().stats().stranded, 0u);
  }
  EXPECT_GT(weather->faults, 0u);
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_GT(stats.read_retries + stats.read_errors + stats.offload_failures, 0u)
      << "every failure is counted";

  weather->clear();
  harness.feed(CacheHarness::tokens(777, kLength));
  harness.sync();
  EXPECT_TRUE(harness.sync_status().ok());
  EXPECT_EQ(harness.cache().health().reason, "") << "writing works again";
  EXPECT_EQ(harness.feed(CacheHarness::tokens(777, kLength)).restored, kLength - 1);
}

TEST(WeatherTest, EveryFailureIsAMissOnASimulatedDevice) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    live_through(seed, seed, 40);
    if (HasFailure()) return;
  }
}

TEST(WeatherTest, EveryFailureIsAMissOnTheCpu) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    live_through(seed, 0, 40);
    if (HasFailure()) return;
  }
}

// The write lane's first task is held until the requests are done: they cannot have waited for it.
TEST(WeatherTest, SlowWritesNeverHoldARequest) {
  MemoryStore store;
  std::mutex mutex;
  std::condition_variable let_go;
  bool held = true;
  store.before_put = [&](const BlockHash&) -> Status {
    std::unique_lock lock(mutex);
    let_go.wait(lock, [&] { return !held; });
    return {};
  };
  CacheHarness harness({.sim_seed = 0, .device_slots = 10, .host_slots = 4}, store);
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const auto outcome = harness.feed(CacheHarness::tokens(seed, kLength));
    EXPECT_TRUE(outcome.opened);
  }
  EXPECT_EQ(harness.cache().stats().offloaded_blocks, 0u);
  EXPECT_GT(harness.cache().stats().offload_failures, 0u) << "what only waited gave way";
  {
    std::lock_guard lock(mutex);
    held = false;
  }
  let_go.notify_all();
  harness.sync();
  EXPECT_GT(harness.cache().stats().durable_blocks, 0u);
  harness.expect_sound();
}

// What the device has for the caller and is no ticket of the cache's.
Status foreign_completion(CacheHarness& harness) {
  std::array<Completion, 1> done;
  while (harness.device().wait_any(0, done) > 0) {
    if (!harness.cache().handle(done[0])) return done[0].status;
  }
  return {};
}

TEST(WeatherTest, WriteThatDoesNotComeBackIsReported) {
  MemoryStore store;
  ManualClock clock;
  CacheHarness harness({.clock = &clock}, store);
  bool asked = false;
  store.before_put = [&](const BlockHash&) -> Status {  // a task of the write lane's
    if (!std::exchange(asked, false)) return {};
    clock.advance_us(CacheTuning{}.lane_patience_us);
    harness.cache().tick();
    return {};
  };
  harness.feed(CacheHarness::tokens(1, kLength), false);
  asked = true;
  const Ticket first = harness.cache().sync();
  ASSERT_TRUE(first);
  EXPECT_FALSE(foreign_completion(harness).ok()) << "whoever waited is told";
  ASSERT_EQ(harness.cache().stats().wedged_tasks, 1u);
  EXPECT_NE(harness.cache().health().reason.find("has not answered a write for 30 s"),
            std::string::npos);
  EXPECT_EQ(harness.cache().health().state, StoreState::kDegraded);
  const Ticket second = harness.cache().sync();
  ASSERT_TRUE(second);
  EXPECT_FALSE(foreign_completion(harness).ok()) << "and whoever asks now";
  harness.drain();
  harness.sync();
  EXPECT_TRUE(harness.sync_status().ok());
  EXPECT_EQ(harness.cache().health().reason, "") << "it came back";
  EXPECT_EQ(harness.cache().stats().durable_blocks, 6u);
}

TEST(WeatherTest, DiskThatIsAlwaysBusyIsGivenUp) {
  MemoryStore store;
  ManualClock clock;
  store.before_put = [](const BlockHash&) -> Status { return Error{ErrorCode::kBusy, "a pause"}; };
  CacheHarness harness({.clock = &clock, .after_step = [&] { clock.advance_us(100'000); }}, store);
  harness.feed(CacheHarness::tokens(1, kLength));
  harness.sync();
  EXPECT_FALSE(harness.sync_status().ok());
  EXPECT_GE(clock.now_us(), CacheTuning{}.busy_patience_us);
  EXPECT_EQ(harness.cache().stats().offload_failures, 7u);
  EXPECT_NE(harness.cache().health().reason.find("a pause"), std::string::npos);
  store.before_put = nullptr;
  harness.feed(CacheHarness::tokens(2, kLength));
  harness.sync();
  EXPECT_EQ(harness.cache().health().reason, "");
}

TEST(WeatherTest, LateRestoresAreCounted) {
  MemoryStore store;
  ManualClock clock;
  const auto tokens = CacheHarness::tokens(3, kLength);
  CacheHarness harness({.clock = &clock}, store);
  harness.feed(tokens);
  harness.sync();
  harness.reopen();
  auto chain = harness.open_chain(tokens, tokens.size() - 1);
  clock.advance_us(CacheTuning{}.restore_deadline_us + 1);
  harness.cache().tick();
  harness.wait_ready(*chain);
  EXPECT_EQ(chain->length(), 0u);
  EXPECT_GE(harness.cache().stats().late_blocks, 1u);
  EXPECT_EQ(harness.cache().stats().damaged_blocks, 0u);
  chain.reset();
  harness.drain();
  EXPECT_EQ(harness.feed(tokens).restored, kLength - 1);
}

}  // namespace
}  // namespace ember::testing
