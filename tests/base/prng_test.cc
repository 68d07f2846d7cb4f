// Prng: the numbers are fixed (sampled answers depend on them) and look uniform.
#include "base/prng.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace ember {
namespace {

TEST(PrngTest, TheSequenceIsSplitMix64) {
  // The published first outputs of SplitMix64 for the seed 1234567.
  Prng random(1234567);
  EXPECT_EQ(random(), 6457827717110365317ull);
  EXPECT_EQ(random(), 3203168211198807973ull);
  EXPECT_EQ(random(), 9817491932198370423ull);
  EXPECT_EQ(random(), 4593380528125082431ull);
  EXPECT_EQ(random(), 16408922859458223821ull);
}

TEST(PrngTest, CounterRandomIsFixedAndHasNoState) {
  EXPECT_EQ(counter_random(1, 2, 3), counter_random(1, 2, 3));
  EXPECT_EQ(counter_random(0, 0, 0), 18152189527315630385ull);
  EXPECT_EQ(counter_random(1, 2, 3), 12799061345140080112ull);
}

TEST(PrngTest, EveryArgumentOfCounterRandomCounts) {
  std::set<uint64_t> all;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (uint64_t a = 0; a < 20; ++a) {
      for (uint64_t b = 0; b < 20; ++b) all.insert(counter_random(seed, a, b));
    }
  }
  EXPECT_EQ(all.size(), 8000u);
}

TEST(PrngTest, NumbersFillTheirRangeEvenly) {
  Prng random(5);
  std::array<int, 10> counts{};
  for (int i = 0; i < 100'000; ++i) {
    ++counts[random.below(10)];
    const double u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
  }
  // Five standard deviations (95 each).
  for (int count : counts) EXPECT_NEAR(count, 10'000, 475);
}

}  // namespace
}  // namespace ember
