// Commands beside a chat that holds their store: they run in it, and end well when it does not.
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/command_line.h"
#include "tools/journey_demo/child_process.h"

namespace ember {
namespace {

using Json = nlohmann::json;

class HolderTest : public CommandLineTest {
 protected:
  std::vector<std::string> chat(const std::string& store, const std::vector<std::string>& more) {
    std::vector<std::string> words = {program_path(),    "chat",         "--json", "--model",
                                      model(),           "--store",      folder_ / store,
                                      "--max-tokens",    "12"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::unique_ptr<ChatClient> start(const std::string& store,
                                    const std::vector<std::string>& more) {
    Result<std::unique_ptr<ChatClient>> client = ChatClient::start(chat(store, more));
    EXPECT_TRUE(client.ok()) << client.error().message;
    return client.ok() ? std::move(client).value() : nullptr;
  }
  std::unique_ptr<ChildProcess> start_plain(const std::vector<std::string>& words) {
    Result<std::unique_ptr<ChildProcess>> child = ChildProcess::start(words);
    EXPECT_TRUE(child.ok()) << child.error().message;
    return child.ok() ? std::move(child).value() : nullptr;
  }
  static AnswerEvent ask(ChatClient& client, const std::string& question) {
    const Result<AnswerEvent> answer = client.ask(question);
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() ? *answer : AnswerEvent{};
  }
  // Lines until one of this event; it is returned.
  static std::string event(ChildProcess& child, const std::string& wanted) {
    while (true) {
      const Result<std::optional<std::string>> line = child.read_line();
      if (!line.ok() || !*line) {
        ADD_FAILURE() << "no " << wanted << ": " << child.errors();
        return {};
      }
      if (event_of(**line) == wanted) return **line;
    }
  }

  const std::string question_ = "What is the horse of Ada?";
  const std::vector<std::string> pell_ = {"--system", "The horse of Ada is Pell."};
  const std::vector<std::string> bram_ = {"--system", "The horse of Ada is Bram."};
};

TEST_F(HolderTest, ASecondChatTalksThroughTheFirstAndBothAnswerAsIfAlone) {
  std::vector<AnswerEvent> alone;
  for (const auto& system : {pell_, bram_}) {
    const auto twin = start("twin", system);
    ASSERT_NE(twin, nullptr);
    alone.push_back(ask(*twin, question_));
    alone.push_back(ask(*twin, "And who?"));
    EXPECT_TRUE(twin->finish().ok());
  }
  const auto holder = start("store", pell_);
  const auto second = start("store", bram_);
  ASSERT_TRUE(holder != nullptr && second != nullptr);
  EXPECT_NE(holder->ready().conversation, second->ready().conversation);
  EXPECT_EQ(ask(*holder, question_).token_ids, alone[0].token_ids);
  const AnswerEvent other = ask(*second, question_);
  EXPECT_EQ(other.token_ids, alone[2].token_ids);
  EXPECT_TRUE(other.durable);
  EXPECT_EQ(ask(*second, "And who?").token_ids, alone[3].token_ids);
  EXPECT_EQ(ask(*holder, "And who?").token_ids, alone[1].token_ids);
  EXPECT_TRUE(second->finish().ok());
  EXPECT_TRUE(holder->finish().ok());
  const auto resumed = start("store", {"--resume", second->ready().conversation});
  ASSERT_NE(resumed, nullptr);
  EXPECT_EQ(resumed->ready().history.size(), 2u);
}

TEST_F(HolderTest, AChatThatWantsAnotherEngineIsRefusedByWhatDiffers) {
  const auto holder = start("store", pell_);
  ASSERT_NE(holder, nullptr);
  const std::vector<std::vector<std::string>> others = {
      {"--attention", "naive"},
      {"--cache-dtype", "fp8"},
      {"--weights", "int8"},
      {"--template", "deepseek-v3"},
      {"--context-tokens", "128"},
      {"--trace", "trace.json"},
  };
  for (const std::vector<std::string>& flags : others) {
    std::vector<std::string> words = chat("store", flags);
    words.erase(words.begin());
    expect_refused(emberkv(words), {flags[0], flags[1]});
  }
  std::vector<std::string> words = chat("store", {});
  words.erase(words.begin());
  words[3] = model_with_config("\"kv_lora_rank\"", "\"kv_lora_rank\"");
  expect_refused(emberkv(words), {"the model", words[3]});
  EXPECT_TRUE(holder->finish().ok());
}

TEST_F(HolderTest, AHolderThatIsKilledIsToldAndTheTalkIsResumed) {
  const auto holder = start("store", pell_);
  ASSERT_NE(holder, nullptr);
  const auto second = start_plain(chat("store", bram_));
  ASSERT_NE(second, nullptr);
  const std::string ready = event(*second, "ready");
  ASSERT_TRUE(second->write(question_ + "\n").ok());
  const Result<AnswerEvent> before = parse_answer(event(*second, "turn"));
  ASSERT_TRUE(before.ok());
  holder->kill_now();
  const Result<int> code = second->wait();
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, 1);
  EXPECT_NE(second->errors().find("ended before the command did"), std::string::npos)
      << second->errors();
  const auto resumed = start("store", {"--resume", parse_ready(ready)->conversation});
  ASSERT_NE(resumed, nullptr);
  ASSERT_EQ(resumed->ready().history.size(), 1u);
  EXPECT_EQ(resumed->ready().history[0].token_ids, before->token_ids);
  EXPECT_GT(ask(*resumed, question_).disk_tokens, 0u);
}

TEST_F(HolderTest, InspectionRunsInTheHolderAndSeesWhatNoFileTells) {
  const auto holder = start("store", {"--system", some_text(5, 40)});
  ASSERT_NE(holder, nullptr);
  const AnswerEvent answer = ask(*holder, question_);
  const uint64_t blocks = answer.cached_tokens() / 64;
  ASSERT_GT(blocks, 2u);
  const std::vector<std::string> at = {"--json", "--store", folder_ / "store"};
  const auto inspect = [&](std::vector<std::string> words) {
    words.insert(words.end(), at.begin(), at.end());
    const CommandResult result = emberkv(words);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return result.output;
  };
  const Json stat = Json::parse(inspect({"stat"}));
  EXPECT_EQ(stat.at("live"), true);
  EXPECT_GT(stat.at("holder_pid").get<int>(), 0);
  EXPECT_EQ(stat.at("blocks").get<uint64_t>(), blocks);
  EXPECT_GE(stat.at("holder").at("tiers").at("device").at("blocks").get<uint64_t>(), blocks);
  std::istringstream lines(inspect({"ls", "--blocks"}));
  uint64_t listed = 0;
  for (std::string line; std::getline(lines, line); ++listed) {
    const Json block = Json::parse(line);
    EXPECT_EQ(block.at("tiers").at(0), "device") << line;
    EXPECT_EQ(block.at("durable"), true) << line;
  }
  EXPECT_EQ(listed, blocks);
  EXPECT_EQ(inspect({"ls", "--leased"}), "");
  EXPECT_EQ(Json::parse(inspect({"verify"})).at("damaged"), 0);
  // What is wrong is said, and counted, as without a holder.
  expect_refused(emberkv({"show", "ffffffffffffffff", "--store", folder_ / "store"}), {"ffff"});
  EXPECT_EQ(emberkv({"ls", "--sort", "colour", "--store", folder_ / "store"}).exit_code, 2);
  EXPECT_TRUE(holder->finish().ok());
}

TEST_F(HolderTest, BlocksOfARunningAnswerAreLeased) {
  const auto holder = start("store", {"--system", some_text(5, 40)});
  ASSERT_NE(holder, nullptr);
  // So hot that it hardly ever draws an end.
  std::vector<std::string> words = chat("store", {"--system", some_text(6, 40)});
  words[8] = "600";
  words.insert(words.end(), {"--temperature", "50"});
  const auto second = start_plain(words);
  ASSERT_NE(second, nullptr);
  event(*second, "ready");
  std::string leased;
  for (int round = 0; round < 4 && leased.empty(); ++round) {
    ASSERT_TRUE(second->write(question_ + "\n").ok());
    event(*second, "delta");
    leased = emberkv({"ls", "--leased", "--json", "--store", folder_ / "store"}).output;
    event(*second, "turn");
  }
  EXPECT_NE(leased, "");
}

TEST_F(HolderTest, PinsLiveInTheHolder) {
  const auto holder = start("store", {"--system", some_text(5, 40)});
  ASSERT_NE(holder, nullptr);
  ask(*holder, question_);
  const std::string store = folder_ / "store";
  const auto pinned = [&] {
    const std::string rows =
        emberkv({"ls", "--pinned", "--json", "--limit", "0", "--store", store}).output;
    return std::count(rows.begin(), rows.end(), '\n');
  };
  const std::string rows =
      emberkv({"ls", "--blocks", "--json", "--limit", "3", "--store", store}).output;
  const size_t last = rows.rfind("\"hash\":\"");
  const std::string third = rows.substr(last + 8, 32);
  EXPECT_EQ(pinned(), 0);
  expect_refused(emberkv({"pin", "", "--store", store}), {"empty"});
  const CommandResult pin =
      emberkv({"pin", third, "--for", "30min", "--json", "--store", store});
  EXPECT_EQ(pin.exit_code, 0) << pin.errors;
  EXPECT_NE(pin.output.find("\"pinned_tokens\":192"), std::string::npos) << pin.output;
  EXPECT_EQ(pinned(), 3);
  EXPECT_EQ(emberkv({"unpin", third, "--store", store}).output, "unpinned 192 tokens\n");
  EXPECT_EQ(pinned(), 0);
  EXPECT_EQ(emberkv({"unpin", third, "--store", store}).output, "nothing of it was pinned\n");
  EXPECT_EQ(emberkv({"unpin", third, "--read-only", "--store", store}).exit_code, 2);
  expect_refused(emberkv({"pin", third, "--for", "31d", "--store", store}), {"--for", "30d"});
  expect_refused(emberkv({"pin", "00000000000000", "--store", store}), {"00000000000000"});
  EXPECT_TRUE(holder->finish().ok());
  expect_refused(emberkv({"pin", third, "--store", store}), {"no process", "chat"});
}

TEST_F(HolderTest, ASnapshotOfARunningStoreOpensByItself) {
  const auto holder = start("store", {"--system", some_text(5, 40)});
  ASSERT_NE(holder, nullptr);
  ask(*holder, question_);
  const std::string store = folder_ / "store";
  const std::string copy = folder_ / "copy";
  const CommandResult taken = emberkv({"snapshot", copy, "--store", store});
  EXPECT_EQ(taken.exit_code, 0) << taken.errors;
  EXPECT_EQ(emberkv({"diff", copy, "--store", store}).exit_code, 0);
  const CommandResult verify = emberkv({"verify", "--store", copy});
  EXPECT_EQ(verify.exit_code, 0) << verify.output << verify.errors;
  EXPECT_NE(emberkv({"ls", "--json", "--limit", "1", "--store", copy}).output.find("\"text\""),
            std::string::npos)
      << "the tokenizer is copied too";
  expect_refused(emberkv({"snapshot", copy, "--store", store}), {copy});
  expect_refused(emberkv({"snapshot", copy + "//", "--store", store}), {copy});
  const std::string slash = folder_ / "slash";
  EXPECT_EQ(emberkv({"snapshot", slash + "/", "--store", store}).exit_code, 0);
  EXPECT_EQ(emberkv({"diff", slash, "--store", store}).exit_code, 0);
  // The second store is read as it lies, and this one is not.
  expect_refused(emberkv({"diff", store, "--store", copy}), {store, "two places", "--read-only"});
  EXPECT_EQ(emberkv({"diff", store, "--store", copy, "--read-only"}).exit_code, 0);
  EXPECT_TRUE(holder->finish().ok());
  expect_refused(emberkv({"snapshot", folder_ / "other", "--store", store}), {"no process"});
}

TEST_F(HolderTest, AConversationHasOneTerminal) {
  const auto holder = start("store", pell_);
  ASSERT_NE(holder, nullptr);
  ask(*holder, question_);
  std::vector<std::string> words = chat("store", {"--resume", "last"});
  words.erase(words.begin());
  expect_refused(emberkv(words), {holder->ready().conversation, "another terminal"});
  EXPECT_TRUE(holder->finish().ok());
}

TEST_F(HolderTest, AHolderGoesOnUntilTheLastTalkHasEnded) {
  const auto holder = start_plain(chat("store", pell_));
  ASSERT_NE(holder, nullptr);
  event(*holder, "ready");
  const auto second = start("store", bram_);
  ASSERT_NE(second, nullptr);
  ASSERT_TRUE(holder->write("/exit\n").ok());
  EXPECT_FALSE(ask(*second, question_).token_ids.empty());
  const auto third = start("store", pell_);
  ASSERT_NE(third, nullptr);
  EXPECT_FALSE(ask(*third, question_).token_ids.empty());
  EXPECT_TRUE(second->finish().ok());
  EXPECT_FALSE(ask(*third, question_).token_ids.empty());
  EXPECT_TRUE(third->finish().ok());
  EXPECT_EQ(*holder->wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "store/holder.sock"));
}

TEST_F(HolderTest, WhatComesFromItsTerminalEndsItsOwnTalkAndSigtermEndsAll) {
  const auto holder = start_plain(chat("store", pell_));
  ASSERT_NE(holder, nullptr);
  event(*holder, "ready");
  const auto second = start_plain(chat("store", bram_));
  ASSERT_NE(second, nullptr);
  event(*second, "ready");
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(second->write(question_ + "\n").ok());
    event(*second, "turn");
    if (round > 0) continue;
    ASSERT_EQ(::kill(holder->pid(), SIGINT), 0);
  }
  ASSERT_EQ(::kill(holder->pid(), SIGTERM), 0);
  EXPECT_EQ(*holder->wait(), 128 + SIGTERM);
  EXPECT_EQ(*second->wait(), 1);
  EXPECT_NE(second->errors().find("ended before the command did"), std::string::npos)
      << second->errors();
}

TEST_F(HolderTest, AReaderThatGoesAwayFromTheHolderEndsNobodyElsesTalk) {
  std::string line;
  for (const std::string& word : chat("store", pell_)) line += "'" + word + "' ";
  const auto holder = start_plain({"/bin/sh", "-c", line + "| head -n 1"});
  ASSERT_NE(holder, nullptr);
  event(*holder, "ready");
  const auto second = start("store", bram_);
  ASSERT_NE(second, nullptr);
  ASSERT_TRUE(holder->write(question_ + "\n").ok());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(ask(*second, question_).token_ids.empty());
  EXPECT_TRUE(second->finish().ok());
}

TEST_F(HolderTest, ATalkWhoseTerminalIsGoneLeavesACutAnswerThatIsFinishedLater) {
  const auto holder = start("store", pell_);
  ASSERT_NE(holder, nullptr);
  const auto second = start("store", {"--system", some_text(3, 6), "--temperature", "1"});
  ASSERT_NE(second, nullptr);
  const Result<bool> cut = second->ask_and_kill(question_, 3);
  ASSERT_TRUE(cut.ok()) << cut.error().message;
  const auto resumed = start("store", {"--resume", second->ready().conversation});
  ASSERT_NE(resumed, nullptr);
  ASSERT_EQ(resumed->ready().history.size(), 1u);
  EXPECT_EQ(resumed->ready().cut_answer, *cut);
  if (*cut) {
    const Result<AnswerEvent> finished = resumed->read_turn();
    ASSERT_TRUE(finished.ok()) << finished.error().message;
    EXPECT_TRUE(finished->finished_cut_answer);
  }
  EXPECT_FALSE(ask(*holder, question_).token_ids.empty());
}

}  // namespace
}  // namespace ember
