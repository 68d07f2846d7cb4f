// One changed byte anywhere, by a seeded sample; disk_sweep_test.cc changes every byte.
#include <gtest/gtest.h>

#include "tests/store/disk/disk_damage.h"

namespace ember {
namespace {

TEST(DiskDamageTest, SampledByteOfEveryFileIsHarmless) {
  DamageRun run;
  Prng prng(2026);
  std::vector<std::string> files = run.files();
  for (int round = 0; round < 200; ++round) {
    const std::string& name = files[static_cast<size_t>(round) % files.size()];
    if (run.size_of(name) == 0) continue;
    run.flip(name, prng.below(run.size_of(name)), static_cast<uint8_t>(1 + prng.below(255)),
             round % 2 == 0);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(run.refused(), 10u);
  EXPECT_GT(run.errors(), 10u);
}

}  // namespace
}  // namespace ember
