// Command line: the built emberkv, run from outside as a user runs it, in folders of the test's
// own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temp_folder.h"
#include "tools/journey_demo/chat_client.h"

namespace ember {

// A test that runs the program. User data and caches go to a folder that goes with the test.
class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest();

  // Runs `emberkv ARGUMENTS` to its end; a child that hangs fails the test.
  CommandResult emberkv(const std::vector<std::string>& arguments, const std::string& input = {});
  // generate --json on the demo model with this store, temperature 0; `prompt` is raw text.
  std::vector<std::string> generate_command(const std::string& store, const std::string& prompt,
                                            int max_tokens = 8) const;
  AnswerEvent generate(const std::string& store, const std::string& prompt, int max_tokens = 8);

  // Expects exit code 1, nothing on standard output and one line on standard error that names
  // each of `names`.
  static void expect_refused(const CommandResult& result, const std::vector<std::string>& names);

  // A copy of the demo model whose config.json has `from` replaced by `to`; other files are links.
  std::string model_with_config(const std::string& from, const std::string& to);
  std::string write(const std::string& name, const std::string& text);
  std::string model() const;

  TempFolder folder_;
};

// The program's path, for tests that start it themselves.
std::string program_path();
// A whole file; fails the test when there is none.
std::string file_text(const std::string& path);
// A text of some `sentences` sentences that depends on the seed alone.
std::string some_text(uint64_t seed, int sentences);
// Path and contents of every file below `folder`, to see that nothing was touched.
std::vector<std::pair<std::string, std::string>> snapshot(const std::string& folder);

}  // namespace ember
