// The simulation against a plain one, block for block: cuts of real traces, and made ones by seed.
#include "store/replay/simulation.h"

#include <gtest/gtest.h>

#include <string>

#include "base/prng.h"
#include "store/replay/public_trace.h"
#include "tests/store/replay/plain_replay.h"

namespace ember::testing {
namespace {

constexpr EvictionPolicy kPolicies[] = {EvictionPolicy::kAuto, EvictionPolicy::kLeafLru,
                                        EvictionPolicy::kS3Fifo};

std::string data(const std::string& name) {
  return std::string(EMBER_SOURCE_DIR) + "/tests/data/traces/" + name;
}

replay::Trace trace_of(const replay::TraceFiles& files) {
  auto trace = replay::read_trace(files);
  EXPECT_TRUE(trace.ok()) << trace.error().message;
  return std::move(*trace);
}

void expect_as_plain(const replay::Trace& trace, size_t capacity, EvictionPolicy policy) {
  SCOPED_TRACE(std::string(eviction_policy_name(policy)) + " of " + std::to_string(capacity));
  const auto report = replay::simulate(trace, capacity, policy);
  ASSERT_TRUE(report.ok());
  PlainReplay plain(trace, capacity, policy);
  EXPECT_EQ(report->hits, plain.run());
  EXPECT_EQ(report->switches, plain.switches());
  EXPECT_LE(report->inserted - report->evicted, capacity);
}

// Requests that go on from earlier ones, branch from them, or begin anew; `answers`: some of their
// last blocks were computed beyond the prompt.
replay::Trace made_trace(uint64_t seed, size_t requests, bool answers) {
  Prng random(seed);
  replay::Trace trace;
  trace.block_tokens = 64;
  replay::BlockNumbering numbering;
  std::vector<std::vector<uint64_t>> earlier;
  for (size_t i = 0; i < requests; ++i) {
    std::vector<uint64_t> ids;
    if (!earlier.empty() && random.below(8) != 0) {
      const size_t lately = std::min<size_t>(earlier.size(), 1 + random.below(30));
      ids = earlier[earlier.size() - lately];
      if (random.below(2) == 0) ids.resize(random.below(ids.size() + 1));
    }
    for (uint64_t more = random.below(6); more > 0; --more) ids.push_back(random.below(1000));
    replay::Request request;
    for (const uint64_t id : ids) request.last = numbering.number(request.last, id);
    request.blocks = static_cast<uint32_t>(ids.size());
    const uint64_t answer = answers ? random.below(std::min<size_t>(ids.size(), 3) + 1) : 0;
    request.looked_up = static_cast<uint32_t>(ids.size() - answer);
    request.prompt_tokens = request.looked_up * trace.block_tokens;
    trace.requests.push_back(request);
    earlier.push_back(std::move(ids));
  }
  finish(trace, numbering);
  return trace;
}

TEST(SimulationTest, AChatTraceHasThePlainSimulationsHits) {
  const replay::Trace trace = trace_of({data("chat.jsonl.gz"), "", "24h"});
  for (const EvictionPolicy policy : kPolicies) {
    for (const double percent : {1.0, 3.0, 10.0}) {
      expect_as_plain(trace, replay::capacity_of(trace, percent), policy);
    }
  }
}

TEST(SimulationTest, AnAgentTraceHasThePlainSimulationsHits) {
  const replay::Trace trace =
      trace_of({data("agent.jsonl.gz"), data("agent_starts.csv"), "6h"});
  for (const EvictionPolicy policy : kPolicies) {
    expect_as_plain(trace, replay::capacity_of(trace, 5), policy);
    expect_as_plain(trace, replay::capacity_of(trace, 20), policy);
  }
  expect_as_plain(trace, trace.longest / 2, EvictionPolicy::kAuto);
}

TEST(SimulationTest, MadeTracesHaveThePlainSimulationsHits) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const replay::Trace trace = made_trace(seed, 400, false);
    for (const EvictionPolicy policy : kPolicies) {
      expect_as_plain(trace, 12 + seed * 7, policy);
    }
  }
}

TEST(SimulationTest, AnswersAreKeptAndNotLookedUp) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const replay::Trace trace = made_trace(seed, 400, true);
    expect_as_plain(trace, 12 + seed * 7, EvictionPolicy::kLeafLru);
    const auto all = replay::simulate(trace, trace.blocks(), EvictionPolicy::kAuto);
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(all->inserted, trace.blocks()) << "of each block one, where nothing goes";
    EXPECT_EQ(all->evicted, 0u);
  }
}

TEST(SimulationTest, ItEndsWhenItIsTold) {
  const replay::Trace trace = made_trace(1, 2000, false);
  const auto cut =
      replay::simulate(trace, 10, EvictionPolicy::kAuto, [](double done) { return done < 0.5; });
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace ember::testing
