// Restores beside computing: a step begins when the first layers are there, waits for each of the
// others, gives way, and counts for nothing when a layer is lost.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/runtime/trace.h"
#include "engine/runtime/trace_file.h"
#include "tests/engine/runtime/sim_scheduler.h"

namespace ember::testing {
namespace {

// Every look at it is a microsecond later: on a simulated device times are then an order of events.
class CountingClock final : public Clock {
 public:
  int64_t now_us() const override { return ++now_us_; }
  int64_t unix_us() const override { return ++now_us_; }

 private:
  mutable std::atomic<int64_t> now_us_{0};
};

std::vector<TraceEvent> of_kind(const Trace& trace, TraceKind kind) {
  std::vector<TraceEvent> found;
  for (const TraceEvent& event : trace.events()) {
    if (event.kind == kind) found.push_back(event);
  }
  return found;
}

struct Overlap {
  explicit Overlap(uint64_t seed, size_t chunk = 64) {
    options.sim_seed = seed;
    options.layer_times = true;
    options.scheduler.chunk_tokens = chunk;
    options.scheduler.clock = &clock;
    options.scheduler.trace = &trace;
    sim = std::make_unique<SimScheduler>(options);
  }
  // When the last group of the request's restore was readable, and its first layer began.
  int64_t last_group_us() const { return of_kind(trace, TraceKind::kGroup).back().end_us; }

  CountingClock clock;
  Trace trace{100'000};
  SimSchedulerOptions options;
  std::unique_ptr<SimScheduler> sim;
};

TEST(OverlapTest, LayerZeroBeginsBeforeTheLastGroupHasCome) {
  const Request request = sim_request(400, 5, 6);
  const std::vector<TokenId> expected = answer_alone(request);
  uint64_t overlapped = 0;
  for (uint64_t seed = 1; seed <= seeds(4); ++seed) {
    Overlap overlap(seed);
    overlap.sim->run(request);
    overlap.sim->drop_ram();
    const size_t steps_before = of_kind(overlap.trace, TraceKind::kStep).size();
    const Outcome outcome = overlap.sim->run(request);
    EXPECT_EQ(outcome.token_ids, expected);
    EXPECT_EQ(outcome.restore.restored_tokens[static_cast<size_t>(Tier::kDisk)], 399u);
    const uint64_t restored_by = of_kind(overlap.trace, TraceKind::kStep)[steps_before].id;
    for (const TraceEvent& layer : of_kind(overlap.trace, TraceKind::kLayer)) {
      if (layer.id != restored_by || layer.value != 0) continue;
      if (layer.begin_us < overlap.last_group_us()) ++overlapped;
    }
  }
  EXPECT_GE(4 * overlapped, 3 * seeds(4));
}

// A read that fails in any group of any block: the step is given up, what is missing is computed.
TEST(OverlapTest, ALostGroupIsComputedAgainAndNeverRead) {
  const Request request = sim_request(400, 5, 6);
  const std::vector<TokenId> expected = answer_alone(request);
  uint64_t failed_steps = 0;
  for (uint64_t seed = 1; seed <= seeds(8); ++seed) {
    Overlap overlap(seed);
    overlap.sim->run(request);
    overlap.sim->drop_ram();
    const auto rows = overlap.sim->cache().rows();
    const BlockHash victim = rows[seed % rows.size()].hash;
    const auto group = static_cast<uint32_t>(seed % overlap.sim->config().layers);
    if (seed % 2 == 0) {
      overlap.sim->store().corrupt(victim, group);
    } else {
      overlap.sim->store().before_read = [=](const BlockHash& hash, uint32_t read) -> Status {
        if (hash == victim && read == group) return {ErrorCode::kIo, "the drive is asleep"};
        return {};
      };
    }
    const size_t before = of_kind(overlap.trace, TraceKind::kStep).size();
    const Outcome outcome = overlap.sim->run(request);
    ASSERT_TRUE(outcome.status.ok());
    EXPECT_EQ(outcome.token_ids, expected) << "seed " << seed;
    EXPECT_LT(outcome.restore.total(), 399u);
    EXPECT_EQ(outcome.restore.total() + outcome.computed_tokens, 400u);
    const size_t useful = (outcome.computed_tokens + 63) / 64 + outcome.token_ids.size() - 1;
    failed_steps += of_kind(overlap.trace, TraceKind::kStep).size() - before - useful;
    EXPECT_EQ(overlap.sim->cache().stats().dedup_mismatch, 0u);
  }
  EXPECT_GE(failed_steps, seeds(8) / 8) << "the test is of steps that had begun";
}

// Another request comes while a step waits for a drive that has fallen asleep.
TEST(OverlapTest, AStepThatWaitsGivesWay) {
  const Request slow = sim_request(400, 5, 4);
  const Request quick = sim_request(30, 6, 8);
  const std::vector<TokenId> expected_slow = answer_alone(slow);
  const std::vector<TokenId> expected_quick = answer_alone(quick);
  SimSchedulerOptions options;
  options.sim_seed = 0;  // threads: the read sleeps
  options.host_slots = 64;
  Trace trace(10'000);
  options.scheduler.trace = &trace;
  SimScheduler sim(options);
  sim.run(slow);
  sim.drop_ram();
  std::atomic<bool> asleep{true};
  const BlockHash late = sim.cache().rows().front().hash;
  const uint32_t last = sim.config().layers - 1;
  sim.store().before_read = [&asleep, late, last](const BlockHash& hash, uint32_t group) -> Status {
    while (hash == late && group == last && asleep.load()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
  };
  const uint64_t waiting = sim.submit(slow);
  sim.scheduler().run_until([&] { return !of_kind(trace, TraceKind::kGroup).empty(); });
  sim.scheduler().tick(0);  // the step ahead is under way
  const uint64_t passing = sim.submit(quick);
  sim.scheduler().run_until([&] { return sim.done(passing); });
  EXPECT_FALSE(sim.done(waiting));
  asleep = false;
  sim.run_all();
  EXPECT_EQ(sim.outcomes().at(passing).token_ids, expected_quick);
  EXPECT_EQ(sim.outcomes().at(waiting).token_ids, expected_slow);
  EXPECT_EQ(sim.outcomes().at(waiting).restore.total(), 399u);
}

TEST(OverlapTest, ACancelledStepAheadLetsItsSlotsGo) {
  const Request request = sim_request(400, 5, 4);
  for (uint64_t seed = 1; seed <= seeds(4); ++seed) {
    Overlap overlap(seed);
    SimScheduler& sim = *overlap.sim;
    sim.run(request);
    sim.drop_ram();
    const uint64_t id = sim.submit(request);
    const size_t before = of_kind(overlap.trace, TraceKind::kGroup).size();
    sim.scheduler().run_until([&] {
      return of_kind(overlap.trace, TraceKind::kGroup).size() > before || sim.done(id);
    });
    sim.scheduler().tick(0);
    sim.scheduler().cancel(id);
    sim.run_all();
    sim.drop_ram();
    EXPECT_EQ(sim.cache().stats().blocks[0], 0u);
    EXPECT_TRUE(sim.run(request).status.ok());
  }
}

// What waits behind a full house comes to RAM, and no device slot is taken for it.
TEST(PrefetchTest, AQueuedRequestIsFetchedToHostRamOnly) {
  SimSchedulerOptions options;
  options.scheduler.limits.max_running = 1;
  SimScheduler sim(options);
  const Request stored = sim_request(300, 5, 4);
  const std::vector<TokenId> expected = sim.run(stored).token_ids;
  sim.drop_ram();
  const uint64_t busy = sim.submit(sim_request(40, 6, 300));
  sim.scheduler().tick(0);
  const uint64_t waiting = sim.submit(stored);
  sim.scheduler().run_until([&] { return sim.cache().stats().prefetched_blocks == 4; });
  EXPECT_FALSE(sim.done(busy));
  const BlockCacheStats stats = sim.cache().stats();
  EXPECT_EQ(stats.blocks[static_cast<size_t>(Tier::kHost)], 4u);
  sim.run_all();
  const Outcome& outcome = sim.outcomes().at(waiting);
  EXPECT_EQ(outcome.token_ids, expected);
  EXPECT_EQ(outcome.restore.restored_tokens[static_cast<size_t>(Tier::kHost)], 256u);
}

TEST(PrefetchTest, AllThatWaitTakeAtMostHalfOfTheHostSlots) {
  SimSchedulerOptions options;
  options.scheduler.limits.max_running = 1;
  options.host_slots = 12;
  SimScheduler sim(options);
  for (uint64_t i = 0; i < 4; ++i) sim.run(sim_request(300, 10 + i, 2));
  sim.drop_ram();
  sim.submit(sim_request(40, 6, 200));
  sim.scheduler().tick(0);
  for (uint64_t i = 0; i < 4; ++i) sim.submit(sim_request(300, 10 + i, 2));
  sim.scheduler().cancel(4 + 3);  // one of those whose blocks are read
  for (int i = 0; i < 200; ++i) {
    sim.scheduler().tick(0);
    EXPECT_LE(sim.cache().stats().prefetch_slots, 6u);
  }
  sim.run_all();
  for (const auto& [id, outcome] : sim.outcomes()) {
    EXPECT_TRUE(outcome.status.ok() || id == 7) << id;
  }
}

TEST(TraceFileTest, PerfettosFormHasATrackForEachRequest) {
  Overlap overlap(3);
  overlap.sim->run(sim_request(300, 5, 6));
  overlap.sim->drop_ram();
  overlap.sim->run(sim_request(300, 5, 6));
  const nlohmann::json file = nlohmann::json::parse(trace_json(overlap.trace));
  std::map<std::string, int> names;
  for (const auto& event : file.at("traceEvents")) {
    ++names[event.at("name")];
    if (event.at("ph") != "X") continue;
    EXPECT_GE(event.at("dur"), 0);
    EXPECT_TRUE(event.at("args").is_object());
  }
  for (const char* name : {"queued", "match", "restore", "restore group 0", "prefill", "decode",
                           "step", "layer 0", "thread_name"}) {
    EXPECT_GT(names[name], 0) << name;
  }
  EXPECT_EQ(file.at("otherData").at("dropped_events"), 0);
}

TEST(TraceTest, AFullRingKeepsTheLastEventsAndCountsTheRest) {
  Trace trace(3);
  for (uint64_t i = 1; i <= 5; ++i) trace.add({TraceKind::kStep, 0, 1, i, 0});
  const std::vector<TraceEvent> events = trace.events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events.front().id, 3u);
  EXPECT_EQ(trace.dropped(), 2u);
}

}  // namespace
}  // namespace ember::testing
