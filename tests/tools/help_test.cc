// Manual and completions: nothing that --help knows is missing, and the shells take them.
#include <sstream>

#include "tests/tools/command_line.h"

namespace ember {
namespace {

class HelpTest : public CommandLineTest {
 protected:
  // Words of the program's own list of commands.
  std::vector<std::string> commands() {
    std::istringstream lines(emberkv({"--help"}).output);
    std::vector<std::string> names;
    bool list = false;
    for (std::string line; std::getline(lines, line);) {
      if (line == "Subcommands:") {
        list = true;
      } else if (list && line.rfind("  ", 0) == 0 && line[2] != ' ') {
        names.push_back(line.substr(2, line.find(' ', 2) - 2));
      }
    }
    EXPECT_GT(names.size(), 15u);
    return names;
  }
};

TEST_F(HelpTest, TheManualNamesEveryCommand) {
  const std::string manual = emberkv({"manual"}).output;
  for (const std::string& name : commands()) {
    EXPECT_NE(manual.find("\n.SS emberkv " + name + "\n"), std::string::npos) << name;
  }
  EXPECT_NE(manual.find("\n.SS emberkv conversations list\n"), std::string::npos);
  EXPECT_NE(manual.find("\\-\\-limit"), std::string::npos);
  std::istringstream lines(manual);
  for (std::string line; std::getline(lines, line);) {
    // Every request is one that man knows.
    if (line.rfind(".", 0) != 0) continue;
    const std::string request = line.substr(0, line.find(' '));
    EXPECT_TRUE(request == ".TH" || request == ".SH" || request == ".SS" || request == ".TP" ||
                request == ".PP" || request == ".nf" || request == ".fi")
        << line;
  }
}

TEST_F(HelpTest, HelpAndManualTellOfChoicesAndDefaultsOnce) {
  const std::string manual = emberkv({"manual"}).output;
  EXPECT_NE(manual.find("{auto,leaf_lru,s3_fifo}"), std::string::npos);
  EXPECT_NE(manual.find("Prompt tokens in one step (1 to 65536; default: 256)"),
            std::string::npos);
  const size_t generate = manual.find(".SS emberkv generate");
  const std::string section = manual.substr(generate, manual.find(".SS", generate + 1) - generate);
  EXPECT_EQ(section.find("\\-\\-help"), section.rfind("\\-\\-help")) << section;
  for (const std::string& name : commands()) {
    const std::string help = emberkv({name, "--help"}).output;
    EXPECT_EQ(help.find("{false}"), std::string::npos) << name;
    EXPECT_EQ(help.find("Option Group"), std::string::npos) << name;
    EXPECT_EQ(help.find("\n\n\n"), std::string::npos) << help;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
  const std::string generate_help = emberkv({"generate", "--help"}).output;
  EXPECT_NE(generate_help.find("\nPrompt: Exactly one of these\n"), std::string::npos);
  EXPECT_NE(generate_help.find("default: 256"), std::string::npos);
  EXPECT_NE(generate_help.find("not with --messages-file"), std::string::npos);
}

TEST_F(HelpTest, BashCompletesCommandsAndFlags) {
  write("completion.bash", emberkv({"completion", "bash"}).output);
  const auto complete = [this](const std::string& words, int at) {
    const auto result =
        run_command({"/bin/bash", "-c",
                     "source '" + (folder_ / "completion.bash") + "'; COMP_WORDS=(" + words +
                         "); COMP_CWORD=" + std::to_string(at) +
                         "; _emberkv; printf '%s\\n' \"${COMPREPLY[@]}\""});
    EXPECT_TRUE(result.ok() && result->exit_code == 0);
    return result->output;
  };
  EXPECT_EQ(complete("emberkv expl", 1), "explain\n");
  EXPECT_EQ(complete("emberkv ls --unused", 2), "--unused-for\n");
  EXPECT_EQ(complete("emberkv conversations l", 2), "list\n");
  EXPECT_NE(complete("emberkv conversations show --i", 3).find("--ids"), std::string::npos);
  EXPECT_EQ(complete("emberkv ls --sort ch", 3), "chain\n");
  EXPECT_EQ(complete("emberkv tree --sort ch", 3), "\n");
  EXPECT_EQ(complete("emberkv ls --sort =", 3).find("age"), 0u) << "--sort=, as bash has it";
  EXPECT_EQ(complete("emberkv ls --sort = ch", 4), "chain\n");
  EXPECT_EQ(complete("emberkv completion f", 2), "fish\n");
  write("some.txt", "");
  EXPECT_EQ(complete("emberkv explain --prompt-file " + (folder_ / "some"), 3),
            (folder_ / "some.txt") + "\n");
}

TEST_F(HelpTest, OtherShellsGetTheirs) {
  const std::string fish = emberkv({"completion", "fish"}).output;
  for (const std::string& name : commands()) {
    EXPECT_NE(fish.find(" -a '" + name + "'"), std::string::npos) << name;
  }
  EXPECT_NE(fish.find(" -l sort -r -f -a 'age bytes"), std::string::npos);
  EXPECT_NE(emberkv({"completion", "zsh"}).output.find("bashcompinit"), std::string::npos);
  EXPECT_EQ(emberkv({"completion", "csh"}).exit_code, 2);
}

TEST_F(HelpTest, WithoutAStoreBareStatSaysWhatToDo) {
  expect_refused(emberkv({"stat"}), {"there is no store yet", "chat"});
}

}  // namespace
}  // namespace ember
