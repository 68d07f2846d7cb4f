// Sample: greedy by hand, the race's distribution, and draws that depend on their place alone.
#include "kernels/sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/run_team.h"

namespace ember {
namespace {

int32_t sample_one(std::vector<float> logits, float temperature, uint64_t seed, int32_t position,
                   size_t valid = 0) {
  int32_t id = -1;
  SampleParams p;
  p.rows = 1;
  p.vocab = logits.size();
  p.valid_vocab = valid == 0 ? logits.size() : valid;
  p.logits = logits.data();
  p.temperatures = &temperature;
  p.seeds = &seed;
  p.positions = &position;
  p.ids = &id;
  run_on_team(p, 1);
  return id;
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(SampleTest, GreedyTakesTheLowestOfTheLargestAmongValidIds) {
  EXPECT_EQ(sample_one({1, 3, 3, 2}, 0, 1, 1), 1);
  EXPECT_EQ(sample_one({1, 3, 3, 9}, 0, 1, 1, 3), 1);
  EXPECT_EQ(sample_one({kNaN, -5, kNaN, -4}, 0, 1, 1), 3);
}

TEST(SampleTest, NothingButNaNIsIdZero) {
  for (const float temperature : {0.0f, 1.0f}) {
    EXPECT_EQ(sample_one({kNaN, kNaN}, temperature, 1, 1), 0);
    EXPECT_EQ(sample_one({-kInfinity, -kInfinity}, temperature, 1, 1), 0);
    EXPECT_EQ(sample_one({0, kInfinity, kNaN}, temperature, 1, 1), 1);
  }
}

TEST(SampleTest, NaNIsNeverDrawn) {
  for (int32_t position = 0; position < 200; ++position) {
    EXPECT_NE(sample_one({0, kNaN, 1}, 1, 7, position), 1);
  }
}

TEST(SampleTest, TheRaceDrawsFromTheSoftmax) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -1.0f};
  for (const float temperature : {1.0f, 0.5f}) {
    std::vector<int> counts(4);
    constexpr int kDraws = 20000;
    for (int32_t i = 0; i < kDraws; ++i) {
      ++counts[static_cast<size_t>(sample_one(logits, temperature, 99, i))];
    }
    double total = 0;
    for (const float l : logits) total += std::exp(static_cast<double>(l / temperature));
    for (size_t j = 0; j < 4; ++j) {
      const double p = std::exp(static_cast<double>(logits[j] / temperature)) / total;
      EXPECT_NEAR(counts[j] / static_cast<double>(kDraws), p, 0.015);
    }
  }
}

// The pruned race and the whole one pick the same id.
TEST(SampleTest, TheRaceIsTheArgmaxOfAllRatios) {
  Prng random(3);
  for (int32_t position = 0; position < 200; ++position) {
    std::vector<float> logits(300);
    for (float& l : logits) l = static_cast<float>(8 * random.uniform());
    double best = -1;
    int32_t expected = 0;
    for (size_t j = 0; j < logits.size(); ++j) {
      const uint64_t bits = counter_random(5, static_cast<uint64_t>(position), j);
      const double u = (static_cast<double>(bits >> 12) + 0.5) * 0x1.0p-52;
      const double ratio = std::exp(static_cast<double>(logits[j])) / -std::log(u);
      if (ratio > best) {
        best = ratio;
        expected = static_cast<int32_t>(j);
      }
    }
    EXPECT_EQ(sample_one(logits, 1, 5, position), expected);
  }
}

}  // namespace
}  // namespace ember
