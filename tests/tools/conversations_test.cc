// conversations from outside: kept whole, at rest and beside the process that holds the store.
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/command_line.h"

namespace ember {
namespace {

using Json = nlohmann::json;

class ConversationsTest : public CommandLineTest {
 protected:
  std::unique_ptr<ChatClient> chat(const std::vector<std::string>& more) {
    std::vector<std::string> all = {program_path(), "chat",  "--json",
                                    "--model",      model(), "--store",
                                    store_,         "--max-tokens", "12",
                                    "--restore",    "always"};
    all.insert(all.end(), more.begin(), more.end());
    Result<std::unique_ptr<ChatClient>> client = ChatClient::start(all);
    EXPECT_TRUE(client.ok()) << client.error().message;
    return client.ok() ? std::move(client).value() : nullptr;
  }
  static AnswerEvent ask(ChatClient& client, const std::string& question) {
    const Result<AnswerEvent> answer = client.ask(question);
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() ? *answer : AnswerEvent{};
  }
  CommandResult conversations(std::vector<std::string> words) {
    words.insert(words.begin(), "conversations");
    words.insert(words.end(), {"--store", store_});
    CommandResult result = emberkv(words);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return result;
  }

  const std::string store_ = folder_ / "store";
  const std::string system_ = some_text(7, 30);
  const std::vector<std::string> questions_ = {"What is the horse of Ada?", "And of Bram?",
                                               "Who is that?"};
};

TEST_F(ConversationsTest, AnExportHoldsAllOfATalkAndIsAMessagesFile) {
  const auto talk = chat({"--system", system_, "--temperature", "0.5", "--seed", "9"});
  ASSERT_NE(talk, nullptr);
  std::vector<AnswerEvent> answers;
  for (const std::string& question : questions_) answers.push_back(ask(*talk, question));
  const std::string id = talk->ready().conversation;
  const std::string live = conversations({"export", id}).output;
  EXPECT_TRUE(talk->finish().ok());
  EXPECT_EQ(conversations({"export", "last"}).output, live) << "at rest as in its holder";
  const std::string file = folder_ / "talk.json";
  conversations({"export", id, "-o", file});
  EXPECT_EQ(file_text(file), live);
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const Json json = Json::parse(live);
  EXPECT_EQ(json.at("conversation"), id);
  EXPECT_EQ(json.at("identity").at("model"), "demo");
  EXPECT_TRUE(json.at("identity").at("fields").contains("weights")) << json.at("identity");
  const Json& messages = json.at("messages");
  ASSERT_EQ(messages.size(), 1 + 2 * questions_.size());
  EXPECT_EQ(messages[0].at("content"), system_);
  const Json shown = Json::parse(conversations({"show", id, "--json", "--ids"}).output);
  for (size_t i = 0; i < questions_.size(); ++i) {
    const Json& question = messages[1 + 2 * i];
    const Json& answer = messages[2 + 2 * i];
    EXPECT_EQ(question.at("content"), questions_[i]);
    EXPECT_EQ(question.at("seed"), 9);
    EXPECT_EQ(question.at("prompt_ids"), shown.at("turns")[i].at("prompt_ids"));
    EXPECT_EQ(answer.at("answer_ids"), Json(answers[i].token_ids));
    EXPECT_EQ(answer.at("content"), answers[i].text);
    EXPECT_EQ(answer.at("state"), "finished");
  }
  const CommandResult explained =
      emberkv({"explain", "--json", "--store", store_, "--messages-file", file});
  EXPECT_EQ(explained.exit_code, 0) << explained.errors;
  EXPECT_GT(Json::parse(explained.output).at("hit_tokens").get<uint64_t>(), 100u);
  const std::string text = conversations({"export", id, "--format", "text"}).output;
  EXPECT_NE(text.find(questions_[2]), std::string::npos);
  EXPECT_EQ(text, conversations({"show", id}).output);
  expect_refused(emberkv({"conversations", "export", id, "-o", folder_.path(), "--store", store_}),
                 {folder_.path()});
}

TEST_F(ConversationsTest, ABranchHasTheOldTurnsHitsThemAndLeavesTheOldTalkAsItWas) {
  const auto talk = chat({"--system", system_});
  ASSERT_NE(talk, nullptr);
  std::vector<AnswerEvent> answers;
  for (const std::string& question : questions_) answers.push_back(ask(*talk, question));
  const std::string id = talk->ready().conversation;
  const std::string before = conversations({"export", id}).output;
  const uint64_t common = answers[1].prompt_tokens + answers[1].token_ids.size();
  // In the holder, while its talk is open.
  const Json silent = Json::parse(conversations({"branch", id, "--turn", "3", "--json"}).output);
  EXPECT_EQ(silent.at("branched_from"), id);
  EXPECT_EQ(silent.at("turns"), 2);
  EXPECT_EQ(silent.at("common_tokens"), common);
  EXPECT_TRUE(talk->finish().ok());
  // At rest, with a question of its own.
  const std::string message = write("message.txt", "What is the trade of Alan Maba?\n");
  const Json asking = Json::parse(
      conversations({"branch", id, "--turn", "3", "--message-file", message, "--json"}).output);
  EXPECT_EQ(conversations({"export", id}).output, before);
  const auto quiet = chat({"--resume", silent.at("conversation").get<std::string>()});
  ASSERT_NE(quiet, nullptr);
  EXPECT_EQ(quiet->ready().history.size(), 2u);
  EXPECT_FALSE(quiet->ready().cut_answer);
  const AnswerEvent same = ask(*quiet, questions_[2]);
  EXPECT_EQ(same.token_ids, answers[2].token_ids);
  EXPECT_GE(same.restored_tokens(), common / 64 * 64) << "all common whole blocks";
  EXPECT_TRUE(quiet->finish().ok());
  const auto other = chat({"--resume", asking.at("conversation").get<std::string>()});
  ASSERT_NE(other, nullptr);
  ASSERT_TRUE(other->ready().cut_answer);
  const Result<AnswerEvent> answered = other->read_turn();
  ASSERT_TRUE(answered.ok()) << answered.error().message;
  EXPECT_GE(answered->restored_tokens(), common / 64 * 64);
  EXPECT_LT(answered->restored_tokens(), answers[2].prompt_tokens);
  EXPECT_FALSE(answered->token_ids.empty());
  EXPECT_TRUE(other->finish().ok());
  for (const char* turn : {"0", "5"}) {
    expect_refused(emberkv({"conversations", "branch", id, "--turn", turn, "--store", store_}),
                   {"3 turns", turn, "1 to 4"});
  }
  EXPECT_EQ(conversations({"export", id}).output, before);
}

TEST_F(ConversationsTest, RemovingTakesTheTextAndRefusesATalkThatIsOpen) {
  const auto talk = chat({"--system", system_});
  ASSERT_NE(talk, nullptr);
  ask(*talk, questions_[0]);
  const std::string open = talk->ready().conversation;
  const std::vector<std::string> remove = {"conversations", "remove", open, "--store", store_};
  const auto with = [&remove](const std::string& flag) {
    std::vector<std::string> words = remove;
    words.push_back(flag);
    return words;
  };
  EXPECT_EQ(emberkv(remove).exit_code, 2) << "nobody can be asked";
  expect_refused(emberkv(with("--yes")), {open, "open in a terminal"});
  const Json branched =
      Json::parse(conversations({"branch", open, "--turn", "2", "--json"}).output);
  const std::string copy = branched.at("conversation");
  const Json live = Json::parse(conversations({"remove", copy, "--yes", "--json"}).output);
  EXPECT_EQ(live.at("turns"), 1);
  expect_refused(emberkv({"conversations", "show", copy, "--store", store_}), {copy});
  EXPECT_TRUE(talk->finish().ok());
  const Json planned = Json::parse(conversations({"remove", "last", "--dry-run", "--json"}).output);
  EXPECT_EQ(planned.at("conversation"), open);
  EXPECT_GT(planned.at("blocks_that_stay").get<uint64_t>(), 2u);
  EXPECT_EQ(planned.at("tails_that_stay"), 1);
  conversations({"show", open});
  EXPECT_NE(conversations({"remove", open, "--yes"}).output.find("stay as cache"),
            std::string::npos);
  EXPECT_EQ(conversations({"list", "--json"}).output, "");
  expect_refused(emberkv(with("--yes")), {open});
  EXPECT_EQ(emberkv({"verify", "--store", store_}).exit_code, 0);
}

}  // namespace
}  // namespace ember
