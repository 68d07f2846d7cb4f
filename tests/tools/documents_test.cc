// The documents: every command that they show is run, here or by .ci/run, in the order shown.
#include <filesystem>
#include <sstream>

#include "tests/tools/command_line.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

class DocumentsTest : public CommandLineTest {
 protected:
  // Lines of the fenced blocks marked `sh`, comments left out.
  static std::vector<std::string> shown_commands(const std::string& document) {
    std::vector<std::string> commands;
    std::istringstream lines(file_text(std::string(EMBER_SOURCE_DIR) + "/" + document));
    bool shell = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("```", 0) == 0) {
        shell = line == "```sh";
      } else if (shell && !line.empty() && line[0] != '#') {
        commands.push_back(line);
      }
    }
    return commands;
  }
};

TEST_F(DocumentsTest, EveryShownCommandWorks) {
  // As in a checkout: models/ and the built program under the names that the documents use.
  fs::create_directory(folder_ / "build");
  fs::create_symlink(program_path(), folder_ / "build/emberkv");
  fs::create_symlink(fs::path(program_path()).parent_path() / "emberkv_make_model",
                     folder_ / "build/emberkv_make_model");
  fs::create_symlink(std::string(EMBER_SOURCE_DIR) + "/models", folder_ / "models");
  for (const char* document : {"README.md", "CONTRIBUTING.md", "docs/cli.md"}) {
    const std::vector<std::string> commands = shown_commands(document);
    EXPECT_FALSE(commands.empty()) << document;
    for (const std::string& command : commands) {
      const bool run_elsewhere = command.rfind("tools/demo", 0) == 0 ||
                                 command.rfind("tools/check", 0) == 0 || command == ".ci/run";
      if (run_elsewhere) continue;
      const Result<CommandResult> result =
          run_command({"/bin/sh", "-c", "cd '" + folder_.path() + "' && " + command});
      ASSERT_TRUE(result.ok()) << command << ": " << result.error().message;
      EXPECT_EQ(result->exit_code, 0) << document << ": " << command << ": " << result->errors;
    }
  }
}

TEST_F(DocumentsTest, CommandsRunElsewhereExist) {
  for (const char* script : {"tools/demo", "tools/check", ".ci/run"}) {
    const std::string path = std::string(EMBER_SOURCE_DIR) + "/" + script;
    EXPECT_TRUE(fs::exists(path)) << script;
    EXPECT_NE(fs::status(path).permissions() & fs::perms::owner_exec, fs::perms::none) << script;
  }
  for (const char* script : {"tools/demo", "tools/check"}) {
    const std::string path = std::string(EMBER_SOURCE_DIR) + "/" + script;
    EXPECT_EQ(run_command({path, "--help"})->exit_code, 0) << script;
    EXPECT_EQ(run_command({path, "--no-such-option"})->exit_code, 2) << script;
  }
}

}  // namespace
}  // namespace ember
