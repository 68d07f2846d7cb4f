// top on a terminal: keys, sizes, a process that holds the store and goes; and as text and JSON.
#include <nlohmann/json.hpp>

#include "tests/tools/command_line.h"
#include "tests/tools/pseudo_terminal.h"

namespace ember {
namespace {

using Json = nlohmann::json;

class TopTest : public CommandLineTest {
 protected:
  std::vector<std::string> top() const {
    return {program_path(), "top", "--store", store_, "--interval", "1s"};
  }
  std::unique_ptr<ChatClient> start_chat() {
    Result<std::unique_ptr<ChatClient>> chat = ChatClient::start(
        {program_path(), "chat", "--json", "--model", model(), "--store", store_, "--max-tokens",
         "4", "--system", some_text(3, 30)});
    EXPECT_TRUE(chat.ok()) << chat.error().message;
    return chat.ok() ? std::move(chat).value() : nullptr;
  }

  const std::string store_ = folder_ / "store";
};

TEST_F(TopTest, KeysAreHeardAndTheTerminalIsPutBack) {
  generate(store_, some_text(1, 30), 2);
  PseudoTerminal terminal(top(), {});
  EXPECT_TRUE(terminal.shows("nobody holds it")) << terminal.shown();
  EXPECT_TRUE(terminal.shows("hottest prefixes")) << terminal.shown();
  terminal.press(" ");
  EXPECT_TRUE(terminal.shows("paused")) << terminal.shown();
  // What does not change on the screen is not sent again: the interval comes back as a whole.
  terminal.press("++");
  terminal.press(" ");
  EXPECT_TRUE(terminal.shows("every 4 s")) << terminal.shown();
  terminal.press("h");
  EXPECT_TRUE(terminal.shows("stops the clock")) << terminal.shown();
  terminal.press("q");
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_NE(terminal.shown().find("\033[?1049l"), std::string::npos)
      << "the screen before comes back";
}

TEST_F(TopTest, ItFitsNarrowTerminalsAndFollowsTheirSize) {
  generate(store_, some_text(1, 30), 2);
  PseudoTerminal terminal(top(), {.columns = 40, .rows = 12});
  EXPECT_TRUE(terminal.shows("q quit  space pause  h help")) << terminal.shown();
  terminal.forget();
  terminal.resize(120, 40);
  EXPECT_TRUE(terminal.shows("+ - interval")) << terminal.shown();
  terminal.forget();
  terminal.resize(5, 2);
  terminal.resize(40, 12);
  EXPECT_TRUE(terminal.shows("h help")) << terminal.shown();
  terminal.press("q");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(TopTest, ARunningProcessIsWatchedToItsEndAndBeyond) {
  const auto chat = start_chat();
  ASSERT_NE(chat, nullptr);
  ASSERT_TRUE(chat->ask("Who is Ada?").ok());
  PseudoTerminal terminal(top(), {.columns = 100, .rows = 40});
  EXPECT_TRUE(terminal.shows("ok; process ")) << terminal.shown();
  EXPECT_TRUE(terminal.shows("tokens/s")) << terminal.shown();
  EXPECT_TRUE(chat->finish().ok());
  EXPECT_TRUE(terminal.shows("nobody holds it")) << terminal.shown();
  terminal.press("q");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(TopTest, OnceAndJsonNeedNoTerminal) {
  generate(store_, some_text(1, 30), 2);
  const CommandResult rest = emberkv({"top", "--once", "--store", store_});
  EXPECT_EQ(rest.exit_code, 0) << rest.errors;
  EXPECT_NE(rest.output.find("nobody holds it"), std::string::npos) << rest.output;
  EXPECT_EQ(rest.output.find('\033'), std::string::npos);
  const auto chat = start_chat();
  ASSERT_NE(chat, nullptr);
  ASSERT_TRUE(chat->ask("Who is Ada?").ok());
  const CommandResult live =
      emberkv({"top", "--once", "--json", "--interval", "1s", "--store", store_});
  ASSERT_EQ(live.exit_code, 0) << live.errors;
  const Json json = Json::parse(live.output);
  EXPECT_EQ(json.at("live"), true);
  EXPECT_GT(json.at("prompt_tokens"), 64);
  EXPECT_EQ(json.at("running"), 0);
  EXPECT_TRUE(json.contains("per_second"));
  ASSERT_FALSE(json.at("hottest").empty());
  EXPECT_NE(json.at("hottest")[0].at("text"), "");
  EXPECT_TRUE(chat->finish().ok());
}

TEST_F(TopTest, WhatIsMissingIsSaid) {
  expect_refused(emberkv({"top", "--store", store_}), {"no store yet"});
  generate(store_, "Hello", 1);
  expect_refused(emberkv({"top", "--store", store_}), {"terminal", "--once"});
  for (const std::string term : {"no-such-terminal", "dumb"}) {
    PseudoTerminal terminal(top(), {.term = term});
    EXPECT_EQ(terminal.wait(), 1);
    EXPECT_NE(terminal.shown().find("TERM=" + term), std::string::npos) << terminal.shown();
    EXPECT_NE(terminal.shown().find("--once"), std::string::npos) << terminal.shown();
  }
  expect_refused(emberkv({"top", "--store", store_, "--interval", "100s"}), {"--interval", "64s"});
}

TEST_F(TopTest, AnInterruptEndsItLikeItsKey) {
  generate(store_, some_text(1, 30), 2);
  PseudoTerminal terminal(top(), {});
  EXPECT_TRUE(terminal.shows("hottest prefixes")) << terminal.shown();
  terminal.press("\x03");
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_NE(terminal.shown().find("\033[?1049l"), std::string::npos)
      << "the screen before comes back";
}

}  // namespace
}  // namespace ember
