// The demo's own parts: what it plants, how it judges, and that it judges against itself.
#include <gtest/gtest.h>

#include <set>

#include "tools/journey_demo/demo_report.h"
#include "tools/journey_demo/demo_run.h"
#include "tools/journey_demo/planted_handbook.h"

namespace ember {
namespace {

std::string demo_model() { return std::string(EMBER_SOURCE_DIR) + "/models/demo"; }

TEST(PlantedHandbookTest, TheSameSeedPlantsTheSameFacts) {
  const auto a = plant_handbook(demo_model(), 7, 10);
  const auto b = plant_handbook(demo_model(), 7, 10);
  const auto c = plant_handbook(demo_model(), 8, 10);
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ(a->text, b->text);
  EXPECT_NE(a->text, c->text);
}

TEST(PlantedHandbookTest, EveryFactStandsInTheTextOnceAndIsAsked) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto planted = plant_handbook(demo_model(), seed, 10);
    ASSERT_TRUE(planted.ok());
    ASSERT_EQ(planted->questions.size(), 10u);
    std::set<std::string> questions;
    for (const PlantedQuestion& question : planted->questions) {
      // "What is the X of Y?" -> "The X of Y is VALUE."
      std::string sentence = question.question.substr(8, question.question.size() - 9);
      sentence[0] = 'T';
      sentence += " is " + question.value + ".";
      const size_t at = planted->text.find(sentence);
      EXPECT_NE(at, std::string::npos) << sentence;
      EXPECT_EQ(planted->text.find(sentence, at + 1), std::string::npos) << sentence;
      questions.insert(question.question);
    }
    EXPECT_EQ(questions.size(), 10u);
    EXPECT_EQ(planted->text.rfind("You keep the handbook.", 0), 0u);
  }
}

TEST(PlantedHandbookTest, AMissingModelFolderIsNamed) {
  const auto planted = plant_handbook("/nowhere", 1, 10);
  ASSERT_FALSE(planted.ok());
  EXPECT_NE(planted.error().message.find("/nowhere/handbook.txt"), std::string::npos);
}

// A result in which every check holds.
DemoResult good_result() {
  DemoResult result;
  AnswerEvent answer;
  answer.text = "It is red.";
  answer.token_ids = {5, 6};
  answer.finish_reason = "stop";
  answer.prompt_tokens = 100;
  answer.disk_tokens = 90;
  answer.computed_tokens = 10;
  for (size_t i = 0; i < kDemoQuestions; ++i) {
    result.turns.push_back({"day 1", {"What?", "red"}, answer, answer});
  }
  result.resumes = {{"while idle", 91, 90}, {"in the middle of an answer", 90, 90}};
  result.new_conversation = answer;
  result.cold = answer;
  result.cold.disk_tokens = 0;
  return result;
}

size_t failures(const DemoResult& result) {
  size_t count = 0;
  for (const DemoCheck& check : judge(result)) count += check.passed ? 0 : 1;
  return count;
}

TEST(DemoJudgeTest, AGoodRunPasses) { EXPECT_EQ(failures(good_result()), 0u); }

TEST(DemoJudgeTest, ATokenThatDiffersFails) {
  DemoResult result = good_result();
  result.turns[4].answer.token_ids[1] = 7;
  EXPECT_EQ(failures(result), 1u);
}

TEST(DemoJudgeTest, AnAnswerWrongWhereTheTwinIsRightFails) {
  DemoResult result = good_result();
  result.turns[9].answer.text = "It is blue.";
  EXPECT_EQ(failures(result), 1u);
}

TEST(DemoJudgeTest, FewerThanSevenRightAnswersFailUnlessTheTwinHasNoMore) {
  DemoResult result = good_result();
  for (size_t i = 0; i < 4; ++i) result.turns[i].asked.value = "blue";
  EXPECT_EQ(failures(result), 0u) << "the model itself knows no better";
  for (size_t i = 0; i < 6; ++i) result.turns[i].asked.value = "blue";
  EXPECT_EQ(failures(result), 1u) << "fewer than half prove nothing";
}

TEST(DemoJudgeTest, TwoDurableTokensComputedAgainFail) {
  DemoResult result = good_result();
  result.resumes[1].durable_tokens = 92;
  EXPECT_EQ(failures(result), 1u);
}

TEST(DemoJudgeTest, ANewConversationThatWasNotRestoredFails) {
  DemoResult result = good_result();
  result.new_conversation.disk_tokens = 0;
  EXPECT_EQ(failures(result), 1u);
}

TEST(DemoJudgeTest, DamageFails) {
  DemoResult result = good_result();
  result.damaged = 1;
  EXPECT_EQ(failures(result), 1u);
}

TEST(DemoReportTest, TableAndJsonSayWhetherItPassed) {
  DemoResult result = good_result();
  EXPECT_EQ(demo_table(result, judge(result)).find("FAILED"), std::string::npos);
  EXPECT_NE(demo_json(result, judge(result)).find("\"passed\": true\n}"), std::string::npos);
  result.damaged = 1;
  EXPECT_NE(demo_table(result, judge(result)).find("FAILED"), std::string::npos);
  EXPECT_NE(demo_json(result, judge(result)).find("\"passed\": false\n}"), std::string::npos);
}

}  // namespace
}  // namespace ember
