// generate as a user runs it: what it prints, what it stores, what a second process finds.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/command_line.h"

namespace ember {
namespace {

using GenerateTest = CommandLineTest;
using Json = nlohmann::json;

TEST_F(GenerateTest, JsonHasEveryFieldOfTheContract) {
  const CommandResult result = emberkv(generate_command(folder_ / "store", some_text(1, 12)));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1);
  const Json json = Json::parse(result.output);
  EXPECT_TRUE(json.at("text").is_string());
  EXPECT_EQ(json.at("token_ids").size(), 8u);
  EXPECT_EQ(json.at("finish_reason"), "length");
  const Json& restored = json.at("restored_tokens");
  for (const char* tier : {"device", "host", "disk", "remote"}) EXPECT_EQ(restored.at(tier), 0);
  EXPECT_GT(json.at("prompt_tokens"), 64);
  EXPECT_EQ(json.at("computed_tokens"), json.at("prompt_tokens"));
  double parts = 0;
  for (const char* part : {"queue", "match", "restore", "prefill"}) {
    parts += json.at("ttft_parts_ms").at(part).get<double>();
  }
  EXPECT_NEAR(parts, json.at("ttft_ms").get<double>(), 0.01);
  EXPECT_GT(json.at("load_ms"), 0);
  EXPECT_GT(json.at("decode_tokens_per_s"), 0);
  EXPECT_EQ(json.at("store").at("state"), "ok");
  EXPECT_EQ(json.at("store").at("reason"), "");
}

TEST_F(GenerateTest, ASecondProcessRestoresAllButOneTokenFromDisk) {
  const std::string prompt = some_text(2, 12);
  const AnswerEvent first = generate(folder_ / "store", prompt);
  std::vector<std::string> words = generate_command(folder_ / "store", prompt);
  words.insert(words.end(), {"--restore", "always"});  // whatever is quicker on this machine
  const Result<AnswerEvent> answer = parse_answer(emberkv(words).output);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  const AnswerEvent& second = *answer;
  EXPECT_EQ(second.token_ids, first.token_ids);
  EXPECT_EQ(second.text, first.text);
  EXPECT_EQ(second.computed_tokens, 1u);
  EXPECT_EQ(second.disk_tokens, first.prompt_tokens - 1);
}

TEST_F(GenerateTest, APromptThatGoesOnDifferentlySharesItsFront) {
  const std::string front = some_text(3, 12);
  const AnswerEvent first = generate(folder_ / "store", front + "One end.");
  const AnswerEvent second = generate(folder_ / "store", front + "Another way to end.");
  EXPECT_GT(second.disk_tokens, 64u);
  EXPECT_EQ(second.restored_tokens() + second.computed_tokens, second.prompt_tokens);
  const AnswerEvent cold = generate(folder_ / "other", front + "Another way to end.");
  EXPECT_EQ(second.token_ids, cold.token_ids);
}

TEST_F(GenerateTest, WithoutCacheNothingIsReadOrWritten) {
  std::vector<std::string> command = generate_command(folder_ / "store", some_text(4, 6));
  command.push_back("--no-cache");
  const CommandResult result = emberkv(command);
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(Json::parse(result.output).at("store").at("state"), "off");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "store"));

  const AnswerEvent cached = generate(folder_ / "store", some_text(4, 6));
  const auto before = snapshot(folder_ / "store");
  const CommandResult again = emberkv(command);
  EXPECT_EQ(Json::parse(again.output).at("computed_tokens"), cached.prompt_tokens);
  EXPECT_EQ(Json::parse(again.output).at("token_ids"), Json(cached.token_ids));
  EXPECT_TRUE(snapshot(folder_ / "store") == before);
}

TEST_F(GenerateTest, ChatWrapsThePromptAsAMessage) {
  const std::string question = "What is the trade of Ada Ramelta?";
  const std::string file =
      write("messages.json", Json{{{"role", "user"}, {"content", question}}}.dump());
  const std::string object =
      write("object.json", Json{{"messages", {{{"role", "user"}, {"content", question}}}}}.dump());
  const std::vector<std::string> common = {"generate", "--json",          "--model",      model(),
                                           "--store",  folder_ / "store", "--max-tokens", "6"};
  std::vector<AnswerEvent> answers;
  for (const std::vector<std::string>& source :
       std::vector<std::vector<std::string>>{{"--prompt", question, "--chat"},
                                             {"--messages-file", file},
                                             {"--messages-file", object}}) {
    std::vector<std::string> command = common;
    command.insert(command.end(), source.begin(), source.end());
    const CommandResult result = emberkv(command);
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    answers.push_back(*parse_answer(result.output));
  }
  EXPECT_EQ(answers[0].prompt_tokens, answers[1].prompt_tokens);
  EXPECT_EQ(answers[0].token_ids, answers[1].token_ids);
  EXPECT_EQ(answers[0].token_ids, answers[2].token_ids);
}

TEST_F(GenerateTest, PlainOutputIsTheTextOfTheJson) {
  const std::string prompt = some_text(5, 4);
  const AnswerEvent json = generate(folder_ / "store", prompt);
  std::vector<std::string> command = generate_command(folder_ / "store", prompt);
  std::erase(command, "--json");
  const CommandResult plain = emberkv(command);
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_EQ(plain.output, json.text + "\n");
  EXPECT_EQ(plain.errors, "");
}

TEST_F(GenerateTest, TheStoreOfTheUserIsTheDefault) {
  std::vector<std::string> command = generate_command("", some_text(6, 4));
  const auto flag = std::find(command.begin(), command.end(), "--store");
  command.erase(flag, flag + 2);
  ASSERT_EQ(emberkv(command).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "data/emberkv/IDENTITY"));
  EXPECT_EQ(emberkv({"stat"}).exit_code, 0);
}

TEST_F(GenerateTest, ASeedDrawsTheSameAnswerAgain) {
  std::vector<std::vector<int32_t>> answers;
  for (const char* seed : {"5", "5", "6"}) {
    std::vector<std::string> command = generate_command(folder_ / "store", some_text(7, 4), 24);
    command.back() = "1.5";
    command.insert(command.end(), {"--seed", seed});
    const CommandResult result = emberkv(command);
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    answers.push_back(parse_answer(result.output)->token_ids);
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_NE(answers[0], answers[2]);
}

TEST_F(GenerateTest, NaiveAndAbsorbGiveTheSameAnswer) {
  std::vector<std::string> command = generate_command(folder_ / "store", some_text(8, 4));
  const std::vector<int32_t> absorb = parse_answer(emberkv(command).output)->token_ids;
  command.insert(command.end(), {"--attention", "naive"});
  const CommandResult naive = emberkv(command);
  ASSERT_EQ(naive.exit_code, 0) << naive.errors;
  EXPECT_EQ(parse_answer(naive.output)->token_ids, absorb);
}

}  // namespace
}  // namespace ember
