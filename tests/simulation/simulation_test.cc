// Nothing wrong is ever read, nothing durable is lost, and a planted fault is found.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/simulation/world.h"

namespace ember::testing {
namespace {

// EMBER_SIMULATIONS: worlds of a thousand requests each.
uint64_t worlds() {
  const char* asked = std::getenv("EMBER_SIMULATIONS");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : 8;
}

TEST(SimulationTest, NothingWrongIsReadAndNothingDurableIsLost) {
  for (uint64_t seed = 1; seed <= worlds(); ++seed) {
    SCOPED_TRACE(seed);
    const WorldReport report = World({.seed = seed}).run();
    if (HasFailure()) return;
    EXPECT_GT(report.restored_tokens, report.computed_tokens / 4) << "a cache that never hits";
    EXPECT_GT(report.refused_writes + report.failed_reads + report.failed_flushes, 20u);
    EXPECT_GT(report.restarts + report.power_cuts, 0u);
    EXPECT_GT(report.cancelled, 0u);
  }
}

TEST(SimulationTest, InFairWeatherEverythingIsRestored) {
  const WorldReport report = World({.seed = 5, .faults = false}).run();
  EXPECT_EQ(report.refused_writes + report.failed_reads + report.failed_flushes, 0u);
  EXPECT_GT(report.restored_tokens, report.computed_tokens);
}

// Failures in a world with a planted fault.
int failures_found(const WorldOptions& options) {
  ::testing::TestPartResultArray failures;
  ::testing::ScopedFakeTestPartResultReporter reporter(
      ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
  World(options).run();
  return failures.size();
}

TEST(PlantedFaultTest, ACopyThatWasReportedAndNotMadeIsFound) {
  EXPECT_GT(failures_found({.seed = 3, .requests = 200, .device_lie = DeviceLie::kCopyLeftOut}), 0);
}

TEST(PlantedFaultTest, ACopyThatLandsAfterItsTicketIsFound) {
  EXPECT_GT(failures_found({.seed = 3, .requests = 200, .device_lie = DeviceLie::kCopyAfterwards}),
            0);
}

TEST(PlantedFaultTest, AFlushThatWasReportedAndNotMadeIsFound) {
  EXPECT_GT(failures_found({.seed = 3, .requests = 200, .disk_lie = DiskLie::kFlushNotMade}), 0);
}

TEST(PlantedFaultTest, BytesThatChangeAfterTheirProofAreFound) {
  EXPECT_GT(failures_found({.seed = 3, .requests = 200, .disk_lie = DiskLie::kWrongBytes}), 0);
}

}  // namespace
}  // namespace ember::testing
