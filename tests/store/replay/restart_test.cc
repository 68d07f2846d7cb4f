// A restart in the middle of a trace, over a disk in memory: a minute of work.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "bench/replay/replay.h"
#include "store/replay/public_trace.h"
#include "tests/store/cache/memory_store.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

const std::string kTraces = std::string(EMBER_SOURCE_DIR) + "/tests/data/traces/";

enum class Shadows { kKept, kKilled, kLost };

struct Restart {
  double at = 0;  // share of the requests; 0: none
  Shadows shadows = Shadows::kKept;
};

// Hits of a trace through a disk of `share` per cent of its blocks.
uint64_t hits_of(const replay::Trace& trace, double share, const Restart& restart) {
  MemoryStore store;
  const TempFolder folder;
  replay::ReplayOptions options;
  options.capacity_blocks = replay::capacity_of(trace, share);
  options.payload_bytes = 2 * trace.block_tokens;
  store.limit_bytes = options.capacity_blocks * options.payload_bytes;
  options.open_disk = [&store] { return open_memory_disk(store); };
  options.disk_limit_bytes = store.limit_bytes;
  options.restart_at = restart.at;
  if (restart.shadows != Shadows::kLost) options.shadows_path = folder / "SHADOWS";
  options.lose_last_shadows = restart.shadows == Shadows::kKilled;
  const auto report = replay::replay(trace, options);
  EXPECT_TRUE(report.ok()) << report.error().message;
  if (!report.ok()) return 0;
  EXPECT_EQ(report->stranded, 0u);
  EXPECT_EQ(store.order_faults, 0u);
  return report->hits;
}

void expect_kept(const replay::Trace& trace, double share) {
  const uint64_t whole = hits_of(trace, share, {});
  const uint64_t kept = hits_of(trace, share, {.at = 0.5});
  EXPECT_GE(static_cast<double>(kept), 0.99 * static_cast<double>(whole));
  // A kill loses what was learned since the last writing.
  const uint64_t killed = hits_of(trace, share, {.at = 0.5, .shadows = Shadows::kKilled});
  EXPECT_GE(static_cast<double>(killed), 0.9 * static_cast<double>(whole));
  // Without them there are hits all the same.
  const uint64_t lost = hits_of(trace, share, {.at = 0.5, .shadows = Shadows::kLost});
  EXPECT_GT(lost, 0u);
  std::printf("%g %%: %llu hits; after a restart %llu, a kill %llu, without shadows %llu\n", share,
              static_cast<unsigned long long>(whole), static_cast<unsigned long long>(kept),
              static_cast<unsigned long long>(killed), static_cast<unsigned long long>(lost));
}

TEST(ReplayRestartTest, AnAgentTraceKeepsItsHits) {
  const auto read =
      replay::read_trace({kTraces + "agent.jsonl.gz", kTraces + "agent_starts.csv", "6h"});
  ASSERT_TRUE(read.ok()) << read.error().message;
  expect_kept(*read, 20);
}

TEST(ReplayRestartTest, AChatTraceKeepsItsHits) {
  const auto read = replay::read_trace({kTraces + "chat.jsonl.gz", "", "24h"});
  ASSERT_TRUE(read.ok()) << read.error().message;
  for (const double share : {6.0, 10.0}) expect_kept(*read, share);
}

}  // namespace
}  // namespace ember::testing
