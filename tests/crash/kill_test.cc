// SIGKILL at seeded random points: what was durable comes back, and the story ends as the twin's.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/prng.h"
#include "tests/support/temp_folder.h"
#include "tools/journey_demo/chat_client.h"

namespace ember {
namespace {

constexpr int kChatPoints = 14;  // half of them at temperature 0, half drawing
constexpr int kGeneratePoints = 6;
constexpr uint64_t kMostDelayUs = 30'000;

const std::vector<std::string> kQuestions = {
    "What is the horse of Ada Ramelta?", "What is the trade of Alan Maba?",
    "Who waits at the harbour?", "What is the captain of Alan Nelaro?"};

std::string system_prompt() {
  std::string text = "You keep the handbook. Answer shortly and only from what is written here.\n";
  for (int i = 0; i < 8; ++i) {
    text += "The captain kept a green horse, and nobody knew where it had come from.\n";
  }
  return text + "The horse of Ada Ramelta is Pell.\nThe trade of Alan Maba is baker.";
}

class KillTest : public testing::Test {
 protected:
  KillTest() { setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1); }

  std::string model() const { return std::string(EMBER_SOURCE_DIR) + "/models/demo"; }

  std::vector<std::string> command(const std::string& name, const std::string& store,
                                   const std::vector<std::string>& more) const {
    std::vector<std::string> words = {EMBER_PROGRAM,   name,           "--json",
                                      "--model",       model(),        "--store",
                                      folder_ / store, "--max-tokens", "40"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  CommandResult run(const std::vector<std::string>& words) const {
    Result<CommandResult> result = run_command(words);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? std::move(result).value() : CommandResult{-1, {}, {}};
  }
  void expect_intact(const std::string& store) const {
    const CommandResult verify =
        run({EMBER_PROGRAM, "verify", "--json", "--store", folder_ / store});
    EXPECT_EQ(verify.exit_code, 0) << verify.output << verify.errors;
  }

  TempFolder folder_;
};

// What a driver saw of a chat before it killed it.
struct Seen {
  std::string conversation;  // empty: not even that
  size_t deltas = 0;
  std::vector<AnswerEvent> durable_turns;
};

class ChatKillTest : public KillTest {
 protected:
  std::vector<std::string> begin(const std::string& store, const std::string& temperature) const {
    return command("chat", store,
                   {"--system", system_prompt(), "--temperature", temperature, "--seed", "3"});
  }
  std::vector<std::string> resume(const std::string& store, const std::string& temperature,
                                  const std::string& id) const {
    return command("chat", store, {"--resume", id, "--temperature", temperature, "--seed", "3"});
  }

  // Asks everything at once and kills after `lines` lines of output and some microseconds.
  Seen kill_after(const std::vector<std::string>& words, size_t lines, uint64_t delay_us) const {
    Seen seen;
    Result<std::unique_ptr<ChildProcess>> started = ChildProcess::start(words);
    EXPECT_TRUE(started.ok());
    if (!started) return seen;
    ChildProcess& child = **started;
    for (const std::string& question : kQuestions) {
      EXPECT_TRUE(child.write(question + "\n").ok());
    }
    const auto note = [&seen](const std::string& line) {
      const std::string event = event_of(line);
      if (event == "ready") seen.conversation = parse_ready(line)->conversation;
      if (event == "delta") ++seen.deltas;
      if (event == "turn") {
        const Result<AnswerEvent> turn = parse_answer(line);
        if (turn && turn->durable) seen.durable_turns.push_back(*turn);
      }
    };
    for (size_t i = 0; i < lines; ++i) {
      const Result<std::optional<std::string>> line = child.read_line();
      EXPECT_TRUE(line.ok());
      if (!line || !*line) break;
      note(**line);
    }
    usleep(static_cast<useconds_t>(delay_us));
    child.kill_now();
    while (true) {
      const Result<std::optional<std::string>> line = child.read_line();
      if (!line || !*line) break;
      note(**line);
    }
    return seen;
  }

  // Resumes after a kill, or begins anew where nothing can have been stored yet.
  std::unique_ptr<ChatClient> come_back(const std::string& store, const std::string& temperature,
                                        const Seen& seen) const {
    const std::string id = seen.conversation.empty() ? "last" : seen.conversation;
    Result<std::unique_ptr<ChatClient>> client = ChatClient::start(resume(store, temperature, id));
    if (client) return std::move(client).value();
    EXPECT_EQ(seen.deltas, 0u) << "what was asked is gone: " << client.error().message;
    client = ChatClient::start(begin(store, temperature));
    EXPECT_TRUE(client.ok()) << client.error().message;
    return client ? std::move(client).value() : nullptr;
  }

  void expect_same_end(ChatClient& client, const Seen& seen, const std::vector<AnswerEvent>& twin) {
    const std::vector<PastTurn>& history = client.ready().history;
    ASSERT_LE(history.size(), kQuestions.size());
    ASSERT_GE(history.size(), seen.durable_turns.size());
    size_t next = history.size();
    for (size_t i = 0; i < history.size(); ++i) {
      EXPECT_EQ(history[i].user, kQuestions[i]);
      if (history[i].finished) {
        EXPECT_EQ(history[i].token_ids, twin[i].token_ids) << i;
      } else {
        EXPECT_EQ(i + 1, history.size());
        EXPECT_TRUE(client.ready().cut_answer);
        next = i;
      }
    }
    ASSERT_GE(next, seen.durable_turns.size()) << "a durable turn was lost";
    bool first = true;
    for (; next < kQuestions.size(); ++next) {
      const bool cut = next + 1 == history.size();
      const Result<AnswerEvent> answer = cut ? client.read_turn() : client.ask(kQuestions[next]);
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      EXPECT_EQ(answer->token_ids, twin[next].token_ids) << next;
      EXPECT_EQ(answer->restored_tokens() + answer->computed_tokens, answer->prompt_tokens);
      if (first && !seen.durable_turns.empty()) {
        EXPECT_GE(answer->restored_tokens() + 1, seen.durable_turns.back().cached_tokens());
      }
      first = false;
    }
    EXPECT_TRUE(client.finish().ok());
  }

  void kill_and_compare(const std::string& temperature, uint64_t first_seed) {
    std::vector<AnswerEvent> twin;
    size_t lines = 1;
    Result<std::unique_ptr<ChatClient>> whole = ChatClient::start(begin("twin", temperature));
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    for (const std::string& question : kQuestions) {
      const Result<AnswerEvent> answer = (*whole)->ask(question);
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      twin.push_back(*answer);
      lines += answer->token_ids.size() + 1;
    }
    EXPECT_TRUE((*whole)->finish().ok());

    for (uint64_t seed = first_seed; seed < first_seed + kChatPoints / 2; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Prng prng(seed);
      const std::string store = "store-" + std::to_string(seed);
      const size_t after = prng.below(lines);
      const Seen seen = kill_after(begin(store, temperature), after,
                                   after == 0 ? prng.below(400'000) : prng.below(kMostDelayUs));
      const std::unique_ptr<ChatClient> client = come_back(store, temperature, seen);
      ASSERT_NE(client, nullptr);
      expect_same_end(*client, seen, twin);
      expect_intact(store);
    }
  }
};

TEST_F(ChatKillTest, TheStoryEndsAsTheTwinsAtTemperatureZero) { kill_and_compare("0", 100); }

TEST_F(ChatKillTest, TheStoryEndsAsTheTwinsWhenDrawing) { kill_and_compare("1.2", 200); }

TEST_F(KillTest, GenerateGivesTheSameTokensAfterAnyKill) {
  const auto generate = [this](const std::string& store) {
    return command("generate", store, {"--prompt", system_prompt(), "--temperature", "0"});
  };
  const int64_t start_us = system_clock().now_us();
  const Result<AnswerEvent> twin = parse_answer(run(generate("twin")).output);
  ASSERT_TRUE(twin.ok());
  const auto whole_us = static_cast<uint64_t>(system_clock().now_us() - start_us);
  for (uint64_t seed = 300; seed < 300 + kGeneratePoints; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string store = "store-" + std::to_string(seed);
    Result<std::unique_ptr<ChildProcess>> child = ChildProcess::start(generate(store));
    ASSERT_TRUE(child.ok());
    usleep(static_cast<useconds_t>(Prng(seed).below(whole_us)));
    (*child)->kill_now();
    const CommandResult again = run(generate(store));
    ASSERT_EQ(again.exit_code, 0) << again.errors;
    const Result<AnswerEvent> answer = parse_answer(again.output);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->token_ids, twin->token_ids);
    EXPECT_EQ(answer->store_state, "ok") << again.errors;
    expect_intact(store);
  }
}

}  // namespace
}  // namespace ember
