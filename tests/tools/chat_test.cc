// chat over pipes: turns, resuming, what is durable when the turn is reported.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/command_line.h"

namespace ember {
namespace {

using Json = nlohmann::json;

class ChatTest : public CommandLineTest {
 protected:
  std::vector<std::string> arguments(const std::string& store,
                                     const std::vector<std::string>& more) {
    std::vector<std::string> words = {"chat",          "--model",      model(), "--store",
                                      folder_ / store, "--max-tokens", "12"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::unique_ptr<ChatClient> start(const std::string& store,
                                    const std::vector<std::string>& more) {
    std::vector<std::string> words = arguments(store, more);
    words.insert(words.begin(), program_path());
    words.push_back("--json");
    Result<std::unique_ptr<ChatClient>> client = ChatClient::start(words);
    EXPECT_TRUE(client.ok()) << client.error().message;
    return client.ok() ? std::move(client).value() : nullptr;
  }
  AnswerEvent ask(ChatClient& client, const std::string& question) {
    const Result<AnswerEvent> answer = client.ask(question);
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() ? *answer : AnswerEvent{};
  }
  std::string system_file() { return write("system.txt", some_text(1, 12)); }

  const std::vector<std::string> questions_ = {"What is the horse of Ada Ramelta?",
                                               "What is the trade of Alan Maba?",
                                               "What is the captain of Alan Nelaro?"};
};

TEST_F(ChatTest, AKilledConversationGoesOnAsIfNothingHadHappened) {
  std::vector<AnswerEvent> twin;
  const auto whole = start("twin", {"--system-file", system_file()});
  ASSERT_NE(whole, nullptr);
  for (const std::string& question : questions_) twin.push_back(ask(*whole, question));
  EXPECT_TRUE(whole->finish().ok());

  const auto first = start("store", {"--system-file", system_file()});
  ASSERT_NE(first, nullptr);
  EXPECT_FALSE(first->ready().resumed);
  const AnswerEvent before = ask(*first, questions_[0]);
  EXPECT_TRUE(before.durable);
  EXPECT_EQ(before.token_ids, twin[0].token_ids);
  first->kill_now();

  const auto second = start("store", {"--resume", first->ready().conversation});
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(second->ready().resumed);
  EXPECT_FALSE(second->ready().cut_answer);
  ASSERT_EQ(second->ready().history.size(), 1u);
  EXPECT_EQ(second->ready().history[0].user, questions_[0]);
  EXPECT_EQ(second->ready().history[0].token_ids, twin[0].token_ids);
  const AnswerEvent after = ask(*second, questions_[1]);
  EXPECT_EQ(after.token_ids, twin[1].token_ids);
  EXPECT_GE(after.disk_tokens + 1, before.cached_tokens());
  EXPECT_EQ(ask(*second, questions_[2]).token_ids, twin[2].token_ids);
  EXPECT_TRUE(second->finish().ok());
}

TEST_F(ChatTest, LaterTurnsOfAProcessNeedNoDisk) {
  const auto chat = start("store", {"--system-file", system_file()});
  ASSERT_NE(chat, nullptr);
  const AnswerEvent first = ask(*chat, questions_[0]);
  const AnswerEvent second = ask(*chat, questions_[1]);
  // Full blocks are still in the device's slots; the unfinished one waits in the host tier.
  EXPECT_GE(second.device_tokens, first.cached_tokens() / 64 * 64);
  EXPECT_GE(second.device_tokens + second.host_tokens + 1, first.cached_tokens());
  EXPECT_EQ(second.disk_tokens, 0u);
  EXPECT_TRUE(chat->finish().ok());
}

TEST_F(ChatTest, LastMeansTheNewestConversation) {
  const auto old = start("store", {"--system", "The old one."});
  ASSERT_NE(old, nullptr);
  ask(*old, questions_[0]);
  EXPECT_TRUE(old->finish().ok());
  const auto fresh = start("store", {"--system", "The new one."});
  ASSERT_NE(fresh, nullptr);
  ask(*fresh, questions_[1]);
  EXPECT_TRUE(fresh->finish().ok());
  const auto resumed = start("store", {"--resume", "last"});
  ASSERT_NE(resumed, nullptr);
  EXPECT_EQ(resumed->ready().conversation, fresh->ready().conversation);
  EXPECT_EQ(resumed->ready().history.at(0).user, questions_[1]);
}

TEST_F(ChatTest, PipedLinesAreTurnsAndExitEnds) {
  const CommandResult result =
      emberkv(arguments("store", {"--json"}),
              questions_[0] + "\n\n" + questions_[1] + "\r\n/exit\n" + questions_[2] + "\n");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  std::vector<Json> turns;
  std::string streamed;
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    if (json.at("event") == "delta") streamed += json.at("text").get<std::string>();
    if (json.at("event") == "turn") turns.push_back(json);
  }
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(streamed,
            turns[0].at("text").get<std::string>() + turns[1].at("text").get<std::string>());
}

TEST_F(ChatTest, PlainOutputIsOneAnswerALine) {
  const CommandResult json = emberkv(arguments("a", {"--json"}), questions_[0] + "\n");
  const CommandResult plain = emberkv(arguments("b", {}), questions_[0] + "\n");
  EXPECT_EQ(plain.exit_code, 0) << plain.errors;
  std::string turn = json.output.substr(0, json.output.size() - 1);
  turn = turn.substr(turn.rfind('\n') + 1);
  EXPECT_EQ(plain.output, Json::parse(turn).at("text").get<std::string>() + "\n");
  EXPECT_EQ(plain.errors.rfind("conversation ", 0), 0u) << plain.errors;
}

TEST_F(ChatTest, AnUnknownConversationIsNamed) {
  expect_refused(emberkv(arguments("store", {"--resume", "0123456789abcdef"})),
                 {"0123456789abcdef"});
  expect_refused(emberkv(arguments("store", {"--resume", "last"})), {"conversation"});
}

TEST_F(ChatTest, AMessageThatDoesNotFitIsReportedAndTheChatGoesOn) {
  std::vector<std::string> words = arguments("store", {"--json", "--context-tokens", "128"});
  const CommandResult result = emberkv(words, some_text(1, 1) + std::string(4000, 'x') + "\n");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("\"event\":\"turn\""), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("\"event\":\"error\""), std::string::npos) << result.output;
  EXPECT_NE(result.errors.find("128"), std::string::npos) << result.errors;
}

TEST_F(ChatTest, WithoutAUsableStoreTheChatLivesInMemory) {
  const auto chat = start("store", {"--system-file", system_file()});
  ASSERT_NE(chat, nullptr);
  const AnswerEvent answer = ask(*chat, questions_[0]);
  EXPECT_TRUE(chat->finish().ok());
  std::string identity = file_text(folder_ / "store/IDENTITY");
  identity[identity.size() / 2] ^= 1;
  write("store/IDENTITY", identity);

  const auto broken = start("store", {"--system-file", system_file()});
  ASSERT_NE(broken, nullptr);
  EXPECT_EQ(broken->ready().store_state, "unusable");
  const AnswerEvent again = ask(*broken, questions_[0]);
  EXPECT_EQ(again.token_ids, answer.token_ids);
  EXPECT_FALSE(again.durable);
  EXPECT_TRUE(broken->finish().ok());
  EXPECT_EQ(file_text(folder_ / "store/IDENTITY"), identity);
}

}  // namespace
}  // namespace ember
