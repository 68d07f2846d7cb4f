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
  // Computes it once, and leaves it on the disk only.
  void store(const Request& request) {
    sim->run(request);
    sim->drop_ram();
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
    overlap.store(request);
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
    overlap.store(request);
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
    overlap.store(request);
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

// One request runs alone, so that all others wait; what was asked before is on the disk only.
struct FullHouse {
  FullHouse(uint32_t host_slots, uint32_t busy_tokens, const std::vector<Request>& before) {
    SimSchedulerOptions options;
    options.scheduler.limits.max_running = 1;
    options.host_slots = host_slots;
    sim = std::make_unique<SimScheduler>(options);
    for (const Request& request : before) expected.push_back(sim->run(request).token_ids);
    sim->drop_ram();
    busy = sim->submit(sim_request(40, 6, busy_tokens));
    sim->scheduler().tick(0);
  }

  std::unique_ptr<SimScheduler> sim;
  std::vector<std::vector<TokenId>> expected;
  uint64_t busy = 0;
};

// What waits comes to RAM, and no device slot is taken for it.
TEST(PrefetchTest, AQueuedRequestIsFetchedToHostRamOnly) {
  const Request stored = sim_request(300, 5, 4);
  FullHouse house(32, 300, {stored});
  SimScheduler& sim = *house.sim;
  const uint64_t waiting = sim.submit(stored);
  sim.scheduler().run_until([&] { return sim.cache().stats().prefetched_blocks == 4; });
  EXPECT_FALSE(sim.done(house.busy));
  const BlockCacheStats stats = sim.cache().stats();
  EXPECT_EQ(stats.blocks[static_cast<size_t>(Tier::kHost)], 4u);
  sim.run_all();
  const Outcome& outcome = sim.outcomes().at(waiting);
  EXPECT_EQ(outcome.token_ids, house.expected[0]);
  EXPECT_EQ(outcome.restore.restored_tokens[static_cast<size_t>(Tier::kHost)], 256u);
}

TEST(PrefetchTest, AllThatWaitTakeAtMostHalfOfTheHostSlots) {
  std::vector<Request> stored;
  for (uint64_t i = 0; i < 4; ++i) stored.push_back(sim_request(300, 10 + i, 2));
  FullHouse house(12, 200, stored);
  SimScheduler& sim = *house.sim;
  std::vector<uint64_t> waiting;
  for (const Request& request : stored) waiting.push_back(sim.submit(request));
  sim.scheduler().cancel(waiting[1]);  // one of those whose blocks are read
  for (int i = 0; i < 200; ++i) {
    sim.scheduler().tick(0);
    EXPECT_LE(sim.cache().stats().prefetch_slots, 6u);
  }
  sim.run_all();
  for (const auto& [id, outcome] : sim.outcomes()) {
    EXPECT_TRUE(outcome.status.ok() || id == waiting[1]) << id;
  }
}

// The running request's blocks find no place on the disk, and those of a waiting one keep half of
// the host slots: it answers all the same, and so does the one that waited.
TEST(PrefetchTest, ADiskThatRefusesWritesStopsNobody) {
  const Request stored = sim_request(300, 5, 4);
  FullHouse house(8, 400, {stored});
  SimScheduler& sim = *house.sim;
  sim.store().before_put = [](const BlockHash&) {
    return Status(ErrorCode::kIo, "the drive refuses everything");
  };
  const uint64_t waiting = sim.submit(stored);
  sim.scheduler().run_until([&] { return sim.cache().stats().prefetched_blocks == 4; });
  while (!sim.done(house.busy)) {
    EXPECT_EQ(sim.cache().stats().prefetch_slots, 4u);
    sim.scheduler().tick(0);
  }
  sim.run_all();
  EXPECT_TRUE(sim.outcomes().at(house.busy).status.ok());
  const Outcome& outcome = sim.outcomes().at(waiting);
  EXPECT_EQ(outcome.token_ids, house.expected[0]);
  EXPECT_EQ(outcome.restore.restored_tokens[static_cast<size_t>(Tier::kHost)], 256u);
  sim.sync();
  EXPECT_GT(sim.cache().stats().offload_failures, 0u);
  EXPECT_EQ(sim.cache().stats().prefetch_slots, 0u);
}

TEST(TraceFileTest, PerfettosFormHasATrackForEachRequest) {
  Overlap overlap(3);
  overlap.store(sim_request(300, 5, 6));
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
