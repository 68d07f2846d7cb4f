// The command line itself: help, usage errors and their exit codes.
#include <algorithm>
#include <set>
#include <sstream>

#include "tests/tools/command_line.h"

namespace ember {
namespace {

using UsageTest = CommandLineTest;

const std::vector<std::string> kCommands = {"chat",     "generate", "stat",    "ls",
                                            "verify",   "forget",   "upgrade", "logits",
                                            "tokenize", "plan",     "convert", "perplexity"};

TEST_F(UsageTest, HelpIsNoError) {
  const CommandResult all = emberkv({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  for (const std::string& command : kCommands) {
    EXPECT_NE(all.output.find(command), std::string::npos) << command;
    const CommandResult help = emberkv({command, "--help"});
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_NE(help.output.find("--"), std::string::npos) << command;
    EXPECT_EQ(help.errors, "") << command;
  }
}

// The words of all commands, as the manual lists them.
std::vector<std::vector<std::string>> listed_commands(const std::string& manual) {
  std::vector<std::vector<std::string>> commands;
  std::istringstream lines(manual);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string request, program, word;
    if (!(words >> request >> program) || request != ".SS" || program != "emberkv") continue;
    commands.emplace_back();
    while (words >> word) commands.back().push_back(word);
  }
  return commands;
}

// "--limit", wherever one stands.
std::set<std::string> flags_in(const std::string& text) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz";
  std::set<std::string> flags;
  for (size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at)) {
    const size_t end =
        std::min(text.find_first_not_of(std::string(kLetters) + "-", at), text.size());
    const bool named = at + 2 < end && text[at + 2] != '-';
    if (named) flags.insert(text.substr(at, end - at));
    at = end;
  }
  return flags;
}

TEST_F(UsageTest, EveryCommandHasExamplesWithFlagsThatItKnows) {
  const std::vector<std::vector<std::string>> commands =
      listed_commands(emberkv({"manual"}).output);
  EXPECT_GT(commands.size(), 20u);
  for (std::vector<std::string> words : commands) {
    std::string name;
    for (const std::string& word : words) name += " " + word;
    words.push_back("--help");
    const std::string help = emberkv(words).output;
    if (words.size() == 1 || help.find("SUBCOMMANDS:") != std::string::npos ||
        help.find("Subcommands:") != std::string::npos) {
      continue;
    }
    const size_t at = help.find("Example");
    ASSERT_NE(at, std::string::npos) << name;
    const std::set<std::string> known = flags_in(help.substr(0, at));
    std::istringstream examples(help.substr(at));
    for (std::string line; std::getline(examples, line);) {
      if (line.rfind("  emberkv" + name, 0) != 0) continue;
      for (const std::string& flag : flags_in(line)) {
        EXPECT_TRUE(known.count(flag) > 0) << line << " of" << name << " has " << flag;
      }
    }
  }
}

TEST_F(UsageTest, VersionIsPrinted) {
  const CommandResult version = emberkv({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.output, "0.1.0\n");
}

TEST_F(UsageTest, WrongCommandLinesEndWithTwoAndOneLine) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"sing"},
      {"stat", "--no-such-flag"},
      {"upgrade", "--to", "3"},
      {"generate", "--model", "m"},
      {"generate", "--prompt", "p"},
      {"generate", "--model", "m", "--prompt", "p", "--prompt-file", "f"},
      {"generate", "--model", "m", "--prompt", "p", "--max-tokens", "0"},
      {"generate", "--model", "m", "--prompt", "p", "--max-tokens", "some"},
      {"generate", "--model", "m", "--prompt", "p", "--attention", "sparse"},
      {"generate", "--model", "m", "--prompt", "p", "--ram-bytes", "much"},
      {"generate", "--model", "m", "--prompt", "p", "--temperature", "-1"},
      {"generate", "--model", "m", "--prompt", "p", "--temperature", "nan"},
      {"generate", "--model", "m", "--prompt", "p", "--max-age", "30"},
      {"generate", "--model", "m", "--prompt", "p", "--max-age", "-30d"},
      {"generate", "--model", "m", "--prompt", "p", "--eviction", "random"},
      {"generate", "--model", "m", "--prompt", "p", "--write-bytes-per-day", "few"},
      {"chat", "--model", "m", "--resume", "last", "--system", "s"},
      {"logits", "--model", "m", "--ids-file", "f"},
      {"logits", "--model", "m", "--ids-file", "f", "--out", "o", "--precision", "int4"},
      {"forget"},
      {"forget", "--scope", "s", "--all"},
      {"tokenize"},
      {"tokenize", "--tokenizer", "t", "--skip-special"},
      {"ls", "--limit", "-1"},
      {"tree", "--depth", "-1"},
      {"explain", "--conversation", "last", "--system", "s"},
  };
  for (const std::vector<std::string>& arguments : wrong) {
    const CommandResult result = emberkv(arguments);
    std::string words;
    for (const std::string& word : arguments) words += " " + word;
    EXPECT_EQ(result.exit_code, 2) << words;
    EXPECT_EQ(result.output, "") << words;
    EXPECT_EQ(result.errors.rfind("emberkv: ", 0), 0u) << words << ": " << result.errors;
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  }
}

TEST_F(UsageTest, AWrongCommandLineNamesTheHelpToLookAt) {
  const auto said = [this](const std::vector<std::string>& words) { return emberkv(words).errors; };
  EXPECT_NE(said({"stat", "--no-such-flag"}).find("(emberkv stat --help)"), std::string::npos);
  EXPECT_NE(said({"conversations", "show"}).find("(emberkv conversations show --help)"),
            std::string::npos);
  EXPECT_NE(said({}).find("(emberkv --help)"), std::string::npos);
}

}  // namespace
}  // namespace ember
