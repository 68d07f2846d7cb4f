// A restart in the middle of a trace, over a disk in memory: a minute of work.
#include <gtest/gtest.h>

#include <string>

#include "bench/replay/replay.h"
#include "bench/replay/trace.h"
#include "tests/store/cache/memory_store.h"

namespace ember::testing {
namespace {

// The disk's victims, and a restart in the middle: recency and hits come back from touch records.
TEST(ReplayRestartTest, ARestartKeepsTheHits) {
  const std::string folder = std::string(EMBER_SOURCE_DIR) + "/tests/data/traces/";
  const auto read =
      replay::read_trace({folder + "agent.jsonl.gz", folder + "agent_starts.csv", "6h"});
  ASSERT_TRUE(read.ok()) << read.error().message;
  const replay::Trace& trace = *read;
  double hits[2] = {};
  for (const bool restart : {false, true}) {
    MemoryStore store;
    replay::ReplayOptions options;
    options.capacity_blocks = replay::capacity_of(trace, 20);
    options.payload_bytes = 2 * trace.block_tokens;
    store.limit_bytes = options.capacity_blocks * options.payload_bytes;
    options.open_disk = [&store] { return open_memory_disk(store); };
    options.disk_limit_bytes = store.limit_bytes;
    options.reopen_after = restart ? 0.5 : 0;
    const auto report = replay::replay(trace, options);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->stranded, 0u);
    EXPECT_EQ(store.order_faults, 0u);
    hits[restart ? 1 : 0] = report->hit_percent();
  }
  EXPECT_GE(hits[1], 0.99 * hits[0]);
}

}  // namespace
}  // namespace ember::testing
