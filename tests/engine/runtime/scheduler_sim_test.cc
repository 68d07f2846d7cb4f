// The scheduler on a simulated device: fairness, limits, cancelling, and what delays what.
#include <algorithm>
#include <ctime>

#include "base/prng.h"
#include "engine/runtime/trace.h"
#include "tests/engine/runtime/sim_scheduler.h"

namespace ember::testing {
namespace {

TEST(SchedulerSimTest, AFloodOfOneTenantDoesNotStarveAnother) {
  SimSchedulerOptions options;
  options.scheduler.limits.max_running = 2;
  SimScheduler sim(options);
  for (uint64_t i = 0; i < 12; ++i) sim.submit(sim_request(60, 10 + i, 8, "flood"));
  sim.scheduler().tick(0);
  const uint64_t quiet = sim.submit(sim_request(60, 90, 8, "quiet"));
  const uint64_t second = sim.submit(sim_request(60, 91, 8, "quiet"));
  sim.scheduler().run_until([&] { return sim.done(quiet); });
  EXPECT_LE(sim.outcomes().size(), 4u) << "it had the first place that came free";
  sim.scheduler().run_until([&] { return sim.done(second); });
  EXPECT_LE(sim.outcomes().size(), 7u) << "and then its turn again";
  sim.run_all();
}

TEST(SchedulerSimTest, AShortPromptIsAnsweredWhileALongOneIsComputed) {
  Trace trace(4096);
  SimSchedulerOptions options;
  options.scheduler.chunk_tokens = 16;
  options.scheduler.trace = &trace;
  SimScheduler sim(options);
  const uint64_t large = sim.submit(sim_request(480, 1, 2));
  for (int i = 0; i < 3; ++i) sim.scheduler().tick(0);
  const uint64_t small = sim.submit(sim_request(24, 2, 2));
  sim.scheduler().run_until([&] { return sim.done(small); });
  EXPECT_FALSE(sim.done(large));
  const std::vector<TraceEvent> events = trace.events();
  const auto steps = std::count_if(events.begin(), events.end(), [](const TraceEvent& event) {
    return event.kind == TraceKind::kStep;
  });
  EXPECT_LE(steps, 12) << "half of each step's rows: three steps, and those that went before";
  sim.run_all();
}

// While one answers, a long prompt is cut in chunks and another prefix comes from the disk: there
// is no step without a token of the answer.
TEST(SchedulerSimTest, ADecodeIsInEveryStep) {
  for (uint64_t seed = 1; seed <= seeds(2); ++seed) {
    Trace trace(4096);
    SimSchedulerOptions options;
    options.sim_seed = seed;
    options.scheduler.chunk_tokens = 16;
    options.scheduler.trace = &trace;
    SimScheduler sim(options);
    const Request stored = sim_request(300, 5, 2);
    sim.run(stored);
    sim.drop_ram();
    uint64_t drawn = 0;
    Request talk = sim_request(20, 6, 60);
    talk.on_token = [&drawn](TokenId) { ++drawn; };
    const uint64_t talking = sim.submit(talk);
    sim.scheduler().run_until([&] { return drawn > 0; });
    const size_t before = trace.events().size();
    sim.submit(sim_request(400, 7, 2));
    sim.submit(stored);
    sim.scheduler().run_until([&] { return sim.done(talking); });
    const std::vector<TraceEvent> events = trace.events();
    const auto steps =
        std::count_if(events.begin() + static_cast<std::ptrdiff_t>(before), events.end(),
                      [](const TraceEvent& event) { return event.kind == TraceKind::kStep; });
    EXPECT_EQ(steps, 59) << "seed " << seed;
    sim.run_all();
  }
}

TEST(SchedulerSimTest, OneRequestIsCancelledWhereverItIs) {
  const Request other = sim_request(100, 2, 12);
  const std::vector<TokenId> expected = answer_alone(other);
  for (uint64_t ticks = 0; ticks < 60; ticks += every_mix() ? 1u : 10u) {
    SimSchedulerOptions options;
    options.sim_seed = 1 + ticks;
    options.scheduler.chunk_tokens = 16;
    SimScheduler sim(options);
    sim.run(sim_request(200, 1, 2));
    sim.drop_ram();
    const uint64_t id = sim.submit(sim_request(200, 1, 30));  // restores, computes, answers
    const uint64_t kept = sim.submit(other);
    for (uint64_t i = 0; i < ticks; ++i) sim.scheduler().tick(0);
    const bool was_there = !sim.done(id);
    EXPECT_EQ(sim.scheduler().cancel(id), was_there);
    EXPECT_FALSE(sim.scheduler().cancel(id)) << "it is gone";
    EXPECT_FALSE(sim.scheduler().cancel(1000));
    ASSERT_TRUE(sim.done(id));
    if (was_there) {
      EXPECT_EQ(sim.outcomes().at(id).status.error().code, ErrorCode::kCancelled);
    }
    sim.run_all();
    EXPECT_EQ(sim.outcomes().at(kept).token_ids, expected) << "after " << ticks << " ticks";
    sim.drop_ram();
    EXPECT_EQ(sim.cache().stats().blocks[0], 0u) << "a slot is still held";
  }
}

TEST(SchedulerSimTest, CallbacksMaySubmitAndCancel) {
  SimScheduler sim({});
  uint64_t victim = 0;
  uint64_t follower = 0;
  Request first = sim_request(50, 1, 10);
  int drawn = 0;
  uint64_t first_id = 0;
  first.on_token = [&](TokenId) {
    if (++drawn != 3) return;
    EXPECT_TRUE(sim.scheduler().cancel(victim));
    EXPECT_TRUE(sim.scheduler().cancel(first_id));
  };
  first.on_done = [&](const Outcome&) { follower = sim.submit(sim_request(30, 3, 4)); };
  first_id = sim.submit(first);
  victim = sim.submit(sim_request(80, 2, 50));
  sim.scheduler().run_until([&] { return follower != 0; });
  sim.run_all();
  EXPECT_EQ(drawn, 3);
  EXPECT_EQ(sim.outcomes().at(follower).token_ids, answer_alone(sim_request(30, 3, 4)));
}

TEST(SchedulerSimTest, ATenantsShareOfTheQueueIsNamed) {
  SimSchedulerOptions options;
  options.scheduler.limits.max_queued = 8;
  SimScheduler sim(options);
  for (uint64_t i = 0; i < 6; ++i) sim.submit(sim_request(10, i, 1, "flood"));
  const Result<uint64_t> refused = sim.scheduler().submit(sim_request(10, 9, 1, "flood"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_NE(refused.error().message.find("6 requests of this tenant"), std::string::npos);
  sim.submit(sim_request(10, 10, 1, "quiet"));
  sim.submit(sim_request(10, 11, 1, "quiet"));
  EXPECT_FALSE(sim.scheduler().submit(sim_request(10, 12, 1, "third")).ok()) << "eight wait";
  sim.run_all();
}

TEST(SchedulerSimTest, TokensInFlightHaveALimitThatOneRequestMayPass) {
  SimSchedulerOptions options;
  options.scheduler.limits.max_tokens_in_flight = 120;
  SimScheduler sim(options);
  size_t running = 0;
  size_t most = 0;
  const auto count = [&](Request request) {
    request.on_prefill = [&, first = true](size_t, size_t) mutable {
      if (first) most = std::max(most, ++running);
      first = false;
    };
    request.on_done = [&](const Outcome& outcome) {
      EXPECT_TRUE(outcome.status.ok());
      --running;
    };
    sim.submit(std::move(request));
  };
  for (uint64_t i = 0; i < 6; ++i) count(sim_request(50, i, 10));
  count(sim_request(200, 9, 5));
  sim.run_all();
  EXPECT_EQ(most, 2u);
}

TEST(SchedulerSimTest, APoolOfOneRequestAndOneBlockAnswersAll) {
  const std::vector<size_t> lengths = {5, 500, 64, 320, 130, 500};
  std::vector<std::vector<TokenId>> expected;
  for (size_t i = 0; i < lengths.size(); ++i) {
    expected.push_back(answer_alone(sim_request(lengths[i], 30 + i / 2, 8)));
  }
  for (uint64_t seed = 1; seed <= seeds(2); ++seed) {
    SimSchedulerOptions options;
    options.sim_seed = seed;
    options.device_slots = 512 / kDefaultBlockTokens + 1;
    options.host_slots = 4;
    options.scheduler.chunk_tokens = 128;
    SimScheduler sim(options);
    for (int round = 0; round < 2; ++round) {
      std::vector<uint64_t> ids;
      for (size_t i = 0; i < lengths.size(); ++i) {
        ids.push_back(sim.submit(sim_request(lengths[i], 30 + i / 2, 8)));
      }
      sim.run_all();
      for (size_t i = 0; i < ids.size(); ++i) {
        ASSERT_TRUE(sim.outcomes().at(ids[i]).status.ok());
        EXPECT_EQ(sim.outcomes().at(ids[i]).token_ids, expected[i]) << "seed " << seed;
      }
    }
  }
}

// Requests and cancels at random: each request ends once, and those that are let end as if alone.
TEST(SchedulerSimTest, AStormOfRequestsAndCancels) {
  std::map<uint64_t, std::vector<TokenId>> expected;
  for (uint64_t kind = 0; kind < 6; ++kind) {
    expected[kind] = answer_alone(sim_request(40 + 70 * kind, kind / 2, 10));
  }
  for (uint64_t seed = 1; seed <= seeds(3); ++seed) {
    Prng prng(seed);
    SimSchedulerOptions options;
    options.sim_seed = seed;
    options.device_slots = 10 + static_cast<uint32_t>(prng.below(20));
    options.scheduler.chunk_tokens = 1 + prng.below(100);
    options.scheduler.limits.max_running = 1 + prng.below(6);
    SimScheduler sim(options);
    std::map<uint64_t, uint64_t> kinds;
    for (int event = 0; event < 120; ++event) {
      const uint64_t draw = prng.below(10);
      if (draw < 2 && kinds.size() < 24) {
        const uint64_t kind = prng.below(6);
        kinds[sim.submit(sim_request(40 + 70 * kind, kind / 2, 10))] = kind;
      } else if (draw == 2 && !kinds.empty()) {
        sim.scheduler().cancel(1 + prng.below(kinds.size()));
      } else {
        sim.scheduler().tick(0);
      }
    }
    sim.run_all();
    for (const auto& [id, outcome] : sim.outcomes()) {
      if (!outcome.status.ok()) continue;
      EXPECT_EQ(outcome.token_ids, expected[kinds[id]]) << "seed " << seed << " request " << id;
    }
  }
}

// What a turn of the loop takes of its own thread, however long the step runs.
TEST(SchedulerSimTest, TicksStayUnderTenMilliseconds) {
  const auto thread_us = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  };
  SimSchedulerOptions options;
  options.sim_seed = 0;
  options.device_slots = 200;
  const size_t prompt_tokens = every_mix() ? 4000 : 1600;
  options.scheduler.context_tokens = prompt_tokens + 96;
  SimScheduler sim(options);
  const uint64_t id = sim.submit(sim_request(prompt_tokens, 1, 4));
  for (uint64_t i = 0; i < 6; ++i) sim.submit(sim_request(100, 2 + i, 30));
  int64_t longest_us = 0;
  while (!sim.done(id)) {
    const int64_t before_us = thread_us();
    sim.scheduler().tick(system_clock().now_us() + 100'000);
    longest_us = std::max(longest_us, thread_us() - before_us);
  }
  EXPECT_LT(longest_us, 10'000);
  sim.run_all();
}

}  // namespace
}  // namespace ember::testing
