// export and import beside a running chat: what comes hits at once, what goes is what it has.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/command_line.h"

namespace ember {
namespace {

using Json = nlohmann::json;

class TransferHolderTest : public CommandLineTest {
 protected:
  std::unique_ptr<ChatClient> start(const std::string& store,
                                    const std::vector<std::string>& more) {
    std::vector<std::string> words = {program_path(), "chat",    "--json",
                                      "--model",      model(),   "--store",
                                      folder_ / store, "--max-tokens", "10"};
    words.insert(words.end(), more.begin(), more.end());
    Result<std::unique_ptr<ChatClient>> client = ChatClient::start(words);
    EXPECT_TRUE(client.ok()) << client.error().message;
    return client.ok() ? std::move(client).value() : nullptr;
  }
  static AnswerEvent ask(ChatClient& client, const std::string& question) {
    const Result<AnswerEvent> answer = client.ask(question);
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() ? *answer : AnswerEvent{};
  }
  Json run(std::vector<std::string> words, const std::string& input = {}) {
    words.push_back("--json");
    const CommandResult result = emberkv(words, input);
    EXPECT_EQ(result.exit_code, 0) << result.errors << result.output;
    return Json::parse(result.output, nullptr, false);
  }

  const std::vector<std::string> system_ = {"--system", some_text(3, 20)};
  const std::string question_ = "What is the horse of Ada?";
};

TEST_F(TransferHolderTest, WhatIsImportedIntoARunningProcessHitsAtOnce) {
  {
    const auto chat = start("away", system_);
    ASSERT_NE(chat, nullptr);
    ask(*chat, question_);
    // Through the process that holds it, to its own standard output.
    const CommandResult out = emberkv({"export", "--store", folder_ / "away", "-o", "-"});
    EXPECT_EQ(out.exit_code, 0) << out.errors;
    EXPECT_NE(out.errors.find("1 conversation"), std::string::npos) << out.errors;
    write("away.tar", out.output);
    EXPECT_TRUE(chat->finish().ok());
  }
  const auto holder = start("here", {"--system", "Be brief."});
  ASSERT_NE(holder, nullptr);
  ask(*holder, "Hello.");
  const std::string here = folder_ / "here";
  const Json plan = run({"import", folder_ / "away.tar", "--store", here, "--dry-run"});
  EXPECT_GT(plan.at("new").at("blocks"), 1);
  // Through a pipe, in pieces as the holder asks for them.
  const Json in = run({"import", "-", "--store", here}, file_text(folder_ / "away.tar"));
  EXPECT_EQ(in.at("new"), plan.at("new"));
  const Json again = run({"import", folder_ / "away.tar", "--store", here});
  EXPECT_EQ(again.at("new").at("blocks"), 0);
  EXPECT_EQ(again.at("known").at("blocks"), plan.at("new").at("blocks"));
  EXPECT_EQ(run({"verify", "--store", here}).at("damaged"), 0);
  const CommandResult diff = emberkv({"diff", folder_ / "away", "--store", here, "--json"});
  EXPECT_EQ(diff.output.find("\"second\""), std::string::npos) << diff.output;

  // A second chat with the same beginning, in the same process.
  const auto second = start("here", system_);
  ASSERT_NE(second, nullptr);
  const AnswerEvent answer = ask(*second, question_);
  EXPECT_GT(answer.restored_tokens(), 64u);
  EXPECT_TRUE(second->finish().ok());
  EXPECT_TRUE(holder->finish().ok());
}

TEST_F(TransferHolderTest, AMovedTalkIsResumedInTheRunningProcess) {
  std::string id;
  {
    const auto chat = start("away", system_);
    ASSERT_NE(chat, nullptr);
    id = chat->ready().conversation;
    ask(*chat, question_);
    EXPECT_TRUE(chat->finish().ok());
  }
  run({"export", "--store", folder_ / "away", "--conversation", id, "-o", folder_ / "talk.tar"});
  const auto holder = start("here", {"--system", "Be brief."});
  ASSERT_NE(holder, nullptr);
  run({"import", folder_ / "talk.tar", "--store", folder_ / "here"});
  const auto moved = start("here", {"--resume", id});
  const auto at_home = start("away", {"--resume", id});
  ASSERT_TRUE(moved != nullptr && at_home != nullptr);
  EXPECT_EQ(moved->ready().history.size(), 1u);
  // Open here now: not to be changed under whoever talks.
  const AnswerEvent home = ask(*at_home, "Why?");
  EXPECT_TRUE(at_home->finish().ok());
  run({"export", "--store", folder_ / "away", "--conversation", id, "-o", folder_ / "more.tar"});
  expect_refused(emberkv({"import", folder_ / "more.tar", "--store", folder_ / "here"}),
                 {id, "open"});
  const AnswerEvent here = ask(*moved, "Why?");
  EXPECT_EQ(here.token_ids, home.token_ids);
  EXPECT_GT(here.restored_tokens(), 64u);
  EXPECT_TRUE(moved->finish().ok());
  EXPECT_TRUE(holder->finish().ok());
}

TEST_F(TransferHolderTest, WhatIsRefusedLeavesTheRunningStoreAsItWas) {
  const auto holder = start("here", system_);
  ASSERT_NE(holder, nullptr);
  ask(*holder, question_);
  const std::string here = folder_ / "here";
  const CommandResult out = emberkv({"export", "--store", here, "-o", "-"});
  ASSERT_EQ(out.exit_code, 0);
  const Json before = run({"stat", "--store", here});
  std::string flipped = out.output;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
  for (const std::string& bytes : {out.output.substr(0, out.output.size() / 2), flipped}) {
    expect_refused(emberkv({"import", "-", "--store", here}, bytes), {"-: "});
  }
  const Json after = run({"stat", "--store", here});
  EXPECT_EQ(after.at("blocks"), before.at("blocks"));
  EXPECT_EQ(after.at("conversations"), before.at("conversations"));
  EXPECT_TRUE(holder->finish().ok());
}

}  // namespace
}  // namespace ember
