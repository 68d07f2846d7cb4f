// The command line itself: help, usage errors and their exit codes.
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

}  // namespace
}  // namespace ember
