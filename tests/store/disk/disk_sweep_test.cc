// The long forms: every byte of a small store changed, and a larger store filled many times over.
#include <gtest/gtest.h>

#include "tests/store/disk/disk_damage.h"
#include "tests/store/disk/disk_fill.h"

namespace ember {
namespace {

TEST(DiskSweepTest, EveryByteOfASmallStoreIsHarmless) {
  DamageRun run;
  for (const std::string& name : run.files()) {
    // Option files are long, and never read when a store is opened.
    size_t stride = name.find("OPTIONS") != std::string::npos ? 97 : 1;
    for (size_t at = 0; at < run.size_of(name); at += stride) {
      run.flip(name, at, static_cast<uint8_t>(1 << (at % 8)), at % 16 == 0);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(DiskSweepTest, SixtyFourMiBHoldThroughFiveTimesTheirSize) {
  FillRun({.limit_bytes = 64u << 20,
           .group_bytes = 400000,
           .keep_every = 31,
           .where = ScratchFolder::kDrive})
      .run();
}

TEST(DiskSweepTest, ErasingOneBlockAtATimeHoldsToo) {
  FillRun({.limit_bytes = 8u << 20, .group_bytes = 20000, .keep_every = 3, .erase_at_once = 1})
      .run();
}

}  // namespace
}  // namespace ember
