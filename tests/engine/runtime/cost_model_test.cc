// Costs are learned from what happened: closely, also from mixtures, and anew after a change.
#include "engine/runtime/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/prng.h"

namespace ember {
namespace {

constexpr size_t kChunk = 256;

double true_compute_us(size_t tokens, size_t position) {
  const double n = static_cast<double>(tokens);
  const double steps = static_cast<double>((tokens + kChunk - 1) / kChunk);
  return 900 * steps + 40 * n + 0.01 * n * (static_cast<double>(position) + n / 2);
}

CostModel made_model() {
  return CostModel(guessed_prior(uint64_t{2} << 30, 30'000, kChunk, 2));
}

TEST(CostModelTest, ThePriorHoldsUntilSomethingIsSeen) {
  const CostPrior prior = guessed_prior(1'000'000'000, 1000, kChunk, 2);
  const CostModel model(prior);
  EXPECT_NEAR(prior.token_us, 50'000, 1);  // 2 GFLOP at 20 GFLOP/s on each of two cores
  EXPECT_NEAR(model.compute_us(10, 0),
              prior.step_us + 10 * prior.token_us + 50 * prior.token_position_us, 1e-3);
  EXPECT_EQ(model.restore_us({5000, 0, 0, 0}), 0) << "what lies on the device is there";
  EXPECT_GT(model.restore_us({0, 0, 64, 0}), model.restore_us({0, 64, 0, 0}));
}

TEST(CostModelTest, ComputingIsLearnedByLengthAndPosition) {
  CostModel model = made_model();
  Prng prng(3);
  for (int i = 0; i < 100; ++i) {
    const size_t tokens = 1 + prng.below(kChunk);
    const size_t position = prng.below(8000);
    model.saw_compute(tokens, position,
                      std::llround(true_compute_us(tokens, position)));
  }
  for (const auto& [tokens, position] : {std::pair<size_t, size_t>{1, 0}, {256, 0}, {2048, 0},
                                         {100, 8000}, {4096, 4096}}) {
    const double expected = true_compute_us(tokens, position);
    EXPECT_NEAR(model.compute_us(tokens, position), expected, 0.05 * expected)
        << tokens << " tokens at " << position;
  }
}

TEST(CostModelTest, EachTierIsLearnedAlsoFromMixedRestores) {
  CostModel model = made_model();
  const auto true_us = [](uint64_t host, uint64_t disk) {
    return (host > 0 ? 200 + 3.0 * static_cast<double>(host) : 0) +
           (disk > 0 ? 5000 + 60.0 * static_cast<double>(disk) : 0);
  };
  Prng prng(4);
  for (int i = 0; i < 200; ++i) {
    const uint64_t host = prng.below(3) == 0 ? 0 : 64 * prng.below(40);
    const uint64_t disk = prng.below(3) == 0 ? 0 : 64 * prng.below(40);
    model.saw_restore({0, host, disk, 0}, std::llround(true_us(host, disk)));
  }
  EXPECT_NEAR(model.restore_us({0, 1024, 0, 0}), true_us(1024, 0), 0.25 * true_us(1024, 0));
  EXPECT_NEAR(model.restore_us({0, 0, 1024, 0}), true_us(0, 1024), 0.1 * true_us(0, 1024));
}

TEST(CostModelTest, OneStallIsHalfBelievedAndAChangeIsFollowed) {
  CostModel model = made_model();
  const CostModel::TokensByTier tokens{0, 0, 640, 0};
  for (int i = 0; i < 20; ++i) model.saw_restore(tokens, 10'000);
  EXPECT_NEAR(model.restore_us(tokens), 10'000, 100);
  model.saw_restore(tokens, 5'000'000);
  EXPECT_LT(model.restore_us(tokens), 12'000);
  model.saw_restore(tokens, 10'000);
  EXPECT_LT(model.restore_us(tokens), 12'000);
  for (int i = 0; i < 3; ++i) model.saw_restore(tokens, 100'000);
  EXPECT_GT(model.restore_us(tokens), 70'000);
}

TEST(LearnedCostTest, CoefficientsAreNeverNegative) {
  LearnedCost cost({1, 1, 1});
  Prng prng(5);
  for (int i = 0; i < 300; ++i) {
    const LearnedCost::Terms terms = {1, static_cast<double>(prng.below(1000)),
                                      static_cast<double>(prng.below(1000))};
    cost.saw(terms, 1 + static_cast<double>(prng.below(100'000)));
    for (size_t term = 0; term < LearnedCost::kTerms; ++term) {
      LearnedCost::Terms one{};
      one[term] = 1;
      ASSERT_GE(cost.of(one), 0);
      ASSERT_TRUE(std::isfinite(cost.of(one)));
    }
  }
}

TEST(CostModelTest, TheNextProcessBeginsWithWhatWasLearned) {
  CostModel model = made_model();
  Prng prng(9);
  for (int i = 0; i < 50; ++i) {
    const size_t tokens = 1 + prng.below(kChunk);
    const size_t position = prng.below(8000);
    model.saw_compute(tokens, position, static_cast<int64_t>(true_compute_us(tokens, position)));
    model.saw_restore({0, 0, 64 + prng.below(2000), 0}, 4000);
  }
  EXPECT_EQ(model.note().observations, 50u);
  CostPrior prior = guessed_prior(uint64_t{2} << 30, 30'000, kChunk, 2);
  prior.learned = model.note();
  const CostModel next(prior);
  const CostModel without_a_model(noted_prior(model.note()));
  for (const size_t tokens : {size_t{1}, size_t{300}, size_t{5000}}) {
    const double compute_us = model.compute_us(tokens, 777);
    EXPECT_NEAR(next.compute_us(tokens, 777), compute_us, 0.05 * compute_us);
    EXPECT_NEAR(without_a_model.compute_us(tokens, 777), compute_us, 1e-6 * compute_us);
    const double restore_us = model.restore_us({0, 10, tokens, 0});
    EXPECT_NEAR(next.restore_us({0, 10, tokens, 0}), restore_us, 0.05 * restore_us);
  }
}

}  // namespace
}  // namespace ember
