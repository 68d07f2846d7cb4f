// How a step's rows are shared out.
#include "engine/runtime/step_plan.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/prng.h"

namespace ember {
namespace {

std::vector<size_t> plan(const std::vector<StepCandidate>& candidates, size_t rows) {
  std::vector<size_t> tokens;
  plan_step(candidates, rows, tokens);
  return tokens;
}

using Tokens = std::vector<size_t>;

TEST(StepPlanTest, DecodesComeInEveryStepBesideAFullChunk) {
  EXPECT_EQ(plan({{"", 1, true}, {"", 5000, false}, {"", 1, true}}, 256), (Tokens{1, 256, 1}));
  EXPECT_EQ(plan({{"", 0, false}}, 256), (Tokens{0})) << "it is restoring";
}

TEST(StepPlanTest, AShortPromptIsNotStuckBehindALongOne) {
  EXPECT_EQ(plan({{"", 5000, false}, {"", 40, false}}, 256), (Tokens{216, 40}));
}

TEST(StepPlanTest, AmongEqualsTheFirstComesFirst) {
  EXPECT_EQ(plan({{"", 300, false}, {"", 300, false}}, 256), (Tokens{256, 0}));
  EXPECT_EQ(plan({{"", 44, false}, {"", 300, false}}, 256), (Tokens{44, 212}));
}

TEST(StepPlanTest, ManyShortPromptsLeaveTheOldestHalf) {
  std::vector<StepCandidate> candidates = {{"", 9000, false}};
  for (int i = 0; i < 7; ++i) candidates.push_back({"", 100, false});
  const Tokens tokens = plan(candidates, 256);
  EXPECT_EQ(tokens[0], 128u);
  EXPECT_EQ(std::accumulate(tokens.begin(), tokens.end(), size_t{0}), 256u);
}

TEST(StepPlanTest, TenantsShareEvenlyWhateverTheirNumbers) {
  EXPECT_EQ(plan({{"flood", 900, false}, {"flood", 800, false}, {"flood", 700, false},
                  {"quiet", 900, false}},
                 256),
            (Tokens{64, 0, 64, 128}));
  EXPECT_EQ(plan({{"flood", 900, false}, {"quiet", 10, false}}, 256), (Tokens{246, 10}))
      << "what a tenant does not want the others have";
}

TEST(StepPlanTest, NoRowIsLostAndNobodyGetsMoreThanItWants) {
  Prng prng(5);
  const std::vector<std::string> names = {"a", "b", "c"};
  for (int round = 0; round < 2000; ++round) {
    std::vector<StepCandidate> candidates(1 + prng.below(8));
    size_t wanted = 0;
    for (StepCandidate& candidate : candidates) {
      candidate = {names[prng.below(3)], prng.below(300), prng.below(4) == 0};
      if (candidate.decode) candidate.uncomputed = 1;
      if (!candidate.decode) wanted += candidate.uncomputed;
    }
    const size_t rows = 1 + prng.below(256);
    const Tokens tokens = plan(candidates, rows);
    size_t given = 0;
    for (size_t i = 0; i < candidates.size(); ++i) {
      EXPECT_LE(tokens[i], candidates[i].uncomputed);
      if (!candidates[i].decode) given += tokens[i];
    }
    EXPECT_EQ(given, std::min(rows, wanted));
  }
}

}  // namespace
}  // namespace ember
