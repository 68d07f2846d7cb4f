// The JSON of generate and chat, from outcomes made by hand.
#include "tools/commands/talk/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ember {
namespace {

using Json = nlohmann::json;

Outcome some_outcome() {
  Outcome outcome;
  outcome.token_ids = {5, 6, 7};
  outcome.finish = FinishReason::kStop;
  outcome.prompt_tokens = 100;
  outcome.computed_tokens = 10;
  outcome.restore.restored_tokens = {20, 30, 40, 0};
  outcome.ttft = {1000, 2000, 3000, 4000};
  outcome.decode_us = 30'000;
  return outcome;
}

TEST(ReportTest, TheTimeBeforeTheRequestCountsAsQueueing) {
  GenerateReport report;
  report.outcome = some_outcome();
  report.before_us = 500;
  const Json json = Json::parse(generate_json(report));
  EXPECT_EQ(json.at("ttft_ms"), 10.5);
  EXPECT_EQ(json.at("ttft_parts_ms").at("queue"), 1.5);
  EXPECT_EQ(json.at("restored_tokens"),
            Json::parse(R"({"device":20,"host":30,"disk":40,"remote":0})"));
}

TEST(ReportTest, ASpeedCountsTheStepsAfterTheFirstDraw) {
  Outcome outcome = some_outcome();
  EXPECT_DOUBLE_EQ(decode_tokens_per_s(outcome), 100);  // three steps: the end token was drawn too
  outcome.finish = FinishReason::kLength;
  EXPECT_NEAR(decode_tokens_per_s(outcome), 66.7, 0.1);
  outcome.token_ids = {5};
  EXPECT_EQ(decode_tokens_per_s(outcome), 0);
}

TEST(ReportTest, BrokenTextIsRepaired) {
  const Json json = Json::parse(delta_json(3, "half \xe2\x82"));
  EXPECT_EQ(json.at("text"), "half \xef\xbf\xbd");
  EXPECT_EQ(json.at("id"), 3);
}

TEST(ReportTest, ReadyTellsTheHistory) {
  Conversation conversation;
  conversation.id = "0123456789abcdef";
  Turn turn;
  turn.user = "Hello";
  turn.answer = {1, 2};
  conversation.turns.push_back(turn);
  ReadyReport report;
  report.conversation = &conversation;
  report.cut_answer = true;
  const Json json = Json::parse(ready_json(report));
  EXPECT_EQ(json.at("conversation"), "0123456789abcdef");
  EXPECT_EQ(json.at("cut_answer"), true);
  EXPECT_EQ(json.at("history").at(0).at("finished"), false);
  EXPECT_EQ(json.at("history").at(0).at("token_ids"), Json({1, 2}));
}

TEST(ReportTest, ReportsAreOneLine) {
  EXPECT_EQ(error_json("two\nlines").find('\n'), std::string::npos);
}

}  // namespace
}  // namespace ember
