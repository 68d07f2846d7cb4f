// Expert route: the choice by hand, and the fast rows against it.
#include "kernels/expert_route.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/run_team.h"

namespace ember {
namespace {

ExpertRouteParams route(size_t experts, size_t top_k, size_t groups, size_t top_groups) {
  ExpertRouteParams p;
  p.experts = experts;
  p.top_k = top_k;
  p.groups = groups;
  p.top_groups = top_groups;
  return p;
}

float logit(double probability) {
  return static_cast<float>(std::log(probability / (1 - probability)));
}

TEST(ExpertRouteTest, BiasChangesTheChoiceAndNotTheWeight) {
  ExpertRouteParams p = route(4, 2, 1, 1);
  const float bias[] = {0.0f, 0.0f, 0.5f, 0.0f};
  const float logits[] = {logit(0.6), logit(0.5), logit(0.2), logit(0.3)};
  int32_t ids[2];
  float weights[2];
  p.bias = bias;
  p.scale = 2;
  choose_experts(p, logits, ids, weights);
  EXPECT_EQ(ids[0], 0);
  EXPECT_EQ(ids[1], 2);
  EXPECT_NEAR(weights[0], 2 * 0.6 / 0.8, 1e-5);
  EXPECT_NEAR(weights[1], 2 * 0.2 / 0.8, 1e-5);
  p.normalize = false;
  choose_experts(p, logits, ids, weights);
  EXPECT_NEAR(weights[0], 1.2, 1e-5);
}

TEST(ExpertRouteTest, AGroupIsWorthItsTwoBest) {
  ExpertRouteParams p = route(6, 2, 3, 1);
  // Group 0 has the single best, group 2 the best pair.
  const float logits[] = {logit(0.9), logit(0.1), logit(0.3), logit(0.3), logit(0.6), logit(0.7)};
  int32_t ids[2];
  float weights[2];
  choose_experts(p, logits, ids, weights);
  EXPECT_EQ(ids[0], 4);
  EXPECT_EQ(ids[1], 5);
}

TEST(ExpertRouteTest, ExcludedGroupsNeverComeBackUnderANegativeBias) {
  ExpertRouteParams p = route(4, 2, 2, 1);
  const float bias[] = {-3.0f, -3.0f, -4.0f, -4.0f};
  const float logits[] = {0.0f, 0.0f, 5.0f, 5.0f};
  int32_t ids[2];
  float weights[2];
  p.bias = bias;
  choose_experts(p, logits, ids, weights);
  EXPECT_EQ(ids[0], 0);
  EXPECT_EQ(ids[1], 1);
}

// V2: a group counts by its best, weights are either normalised or scaled.
TEST(ExpertRouteTest, SoftmaxScoresGroupsByTheirBest) {
  ExpertRouteParams p = route(6, 2, 3, 1);
  p.score = RouteScore::kSoftmax;
  p.normalize = false;
  p.scale = 16;
  const float logits[] = {2.0f, -1.0f, 0.0f, 0.0f, 1.8f, 1.9f};
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  int32_t ids[2];
  float weights[2];
  choose_experts(p, logits, ids, weights);
  EXPECT_EQ(ids[0], 0);
  EXPECT_EQ(ids[1], 1);
  EXPECT_NEAR(weights[0], 16 * std::exp(2.0) / sum, 1e-5);
  p.groups = p.top_groups = 1;
  p.normalize = true;
  choose_experts(p, logits, ids, weights);
  EXPECT_EQ(ids[1], 5);
  EXPECT_NEAR(weights[0] + weights[1], 1, 1e-6);
  p.top_k = 1;
  choose_experts(p, logits, ids, weights);
  EXPECT_NEAR(weights[0], 16 * std::exp(2.0) / sum, 1e-5);
}

TEST(ExpertRouteTest, TiesGoToTheLowestAndNaNComesLast) {
  ExpertRouteParams p = route(5, 2, 1, 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float logits[] = {nan, 1.0f, 1.0f, 1.0f, 0.0f};
  int32_t ids[2];
  float weights[2];
  choose_experts(p, logits, ids, weights);
  EXPECT_EQ(ids[0], 1);
  EXPECT_EQ(ids[1], 2);
}

TEST(ExpertRouteTest, RowsGiveWhatTheChoiceOfTheirLogitsGives) {
  constexpr size_t kRows = 70, kWidth = 45;
  Prng random(5);
  const auto x = random_values(kRows * kWidth, DType::kBf16, random);
  const auto w = random_values(8 * kWidth, DType::kF32, random);
  ExpertRouteParams p = route(8, 3, 4, 2);
  p.rows = kRows;
  p.width = kWidth;
  p.x = x.data();
  p.w = w.data();
  p.w_dtype = DType::kF32;
  std::vector<int32_t> ids(kRows * 3), ids_of_team(kRows * 3);
  std::vector<float> weights(kRows * 3), weights_of_team(kRows * 3);
  p.ids = ids.data();
  p.weights = weights.data();
  run_on_team(p, 1);
  p.ids = ids_of_team.data();
  p.weights = weights_of_team.data();
  run_on_team(p, 4);
  EXPECT_EQ(ids, ids_of_team);
  EXPECT_EQ(weights, weights_of_team);
  for (size_t r = 0; r < kRows; ++r) {
    float logits[8];
    for (size_t e = 0; e < 8; ++e) {
      double sum = 0;
      for (size_t i = 0; i < kWidth; ++i) {
        sum += static_cast<double>(value_of(x, DType::kBf16, r * kWidth + i)) *
               static_cast<double>(value_of(w, DType::kF32, e * kWidth + i));
      }
      logits[e] = static_cast<float>(sum);
    }
    int32_t expected[3];
    float expected_weights[3];
    choose_experts(p, logits, expected, expected_weights);
    for (size_t k = 0; k < 3; ++k) {
      ASSERT_EQ(ids[r * 3 + k], expected[k]);
      ASSERT_NEAR(weights[r * 3 + k], expected_weights[k], 1e-5);
    }
  }
}

}  // namespace
}  // namespace ember
