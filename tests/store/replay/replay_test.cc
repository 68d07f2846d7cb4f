// Cuts of real traces through the block cache, against a plain simulation of the same policy.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "bench/replay/replay.h"
#include "store/replay/public_trace.h"
#include "tests/store/replay/plain_replay.h"

namespace ember::testing {
namespace {

std::string data(const std::string& name) {
  return std::string(EMBER_SOURCE_DIR) + "/tests/data/traces/" + name;
}

replay::Trace chat() {
  auto trace = replay::read_trace({data("chat.jsonl.gz"), "", "24h"});
  EXPECT_TRUE(trace.ok()) << trace.error().message;
  return std::move(*trace);
}

replay::Trace agent(const std::string& window) {
  auto trace = replay::read_trace({data("agent.jsonl.gz"), data("agent_starts.csv"), window});
  EXPECT_TRUE(trace.ok()) << trace.error().message;
  return std::move(*trace);
}

double percent(uint64_t hits, const replay::Trace& trace) {
  return 100.0 * static_cast<double>(hits) / static_cast<double>(trace.references);
}

void expect_as_plain(const replay::Trace& trace, double share, EvictionPolicy policy) {
  SCOPED_TRACE(std::string(eviction_policy_name(policy)) + " at " + std::to_string(share));
  replay::ReplayOptions options;
  options.capacity_blocks = replay::capacity_of(trace, share);
  options.policy = policy;
  const auto report = replay::replay(trace, options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  PlainReplay plain(trace, options.capacity_blocks, policy);
  EXPECT_NEAR(report->hit_percent(), percent(plain.run(), trace), 0.1);
  EXPECT_EQ(report->switches, plain.switches());
  EXPECT_EQ(report->stranded, 0u);
  EXPECT_EQ(report->refused_requests, 0u);
}

TEST(TraceTest, CutsHaveTheFootprintOfTheirIds) {
  const replay::Trace requests = chat();
  EXPECT_EQ(requests.requests.size(), 1000u);
  EXPECT_EQ(requests.blocks(), 21514u);
  EXPECT_EQ(requests.references, 27305u);
  EXPECT_EQ(requests.block_tokens, 512u);
  const replay::Trace sessions = agent("6h");
  EXPECT_EQ(sessions.block_tokens, 256u);
  EXPECT_EQ(sessions.blocks(), agent("24h").blocks());
}

TEST(TraceTest, WhatIsWrongIsNamed) {
  EXPECT_FALSE(replay::read_trace({"/nowhere", "", "24h"}).ok());
  const auto without_starts = replay::read_trace({data("agent.jsonl.gz"), "", "24h"});
  ASSERT_FALSE(without_starts.ok());
  EXPECT_NE(without_starts.error().message.find("--starts"), std::string::npos);
  EXPECT_FALSE(
      replay::read_trace({data("agent.jsonl.gz"), data("agent_starts.csv"), "7h"}).ok());
}

TEST(ReplayTest, ChatAgreesWithThePlainSimulation) {
  const replay::Trace trace = chat();
  for (const EvictionPolicy policy :
       {EvictionPolicy::kAuto, EvictionPolicy::kLeafLru, EvictionPolicy::kS3Fifo}) {
    expect_as_plain(trace, 3, policy);
  }
}

TEST(ReplayTest, AgentAgreesWithThePlainSimulation) {
  const replay::Trace trace = agent("6h");
  expect_as_plain(trace, 10, EvictionPolicy::kAuto);
  expect_as_plain(trace, 10, EvictionPolicy::kLeafLru);
}

TEST(ReplayTest, ACacheSmallerThanARequestStillServes) {
  const replay::Trace trace = agent("24h");
  replay::ReplayOptions options;
  options.capacity_blocks = trace.longest / 2;
  const auto report = replay::replay(trace, options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->stranded, 0u);
}

}  // namespace
}  // namespace ember::testing
