// The fixture behind tests/tools/command_line.h.
#include "tests/tools/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/prng.h"

namespace ember {

namespace fs = std::filesystem;

std::string program_path() { return EMBER_PROGRAM; }

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string some_text(uint64_t seed, int sentences) {
  static const std::vector<std::string> kWords = {"the",     "captain", "keeps", "a",     "green",
                                                  "harbour", "and",     "old",   "horse", "waits"};
  Prng prng(seed);
  std::string text;
  for (int i = 0; i < sentences; ++i) {
    for (int word = 0; word < 8; ++word) text += kWords[prng.below(kWords.size())] + " ";
    text += "here.\n";
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> snapshot(const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    // LOCK holds the pid of whoever came last.
    if (!entry.is_regular_file() || entry.path().filename() == "LOCK") continue;
    files.emplace_back(entry.path(), file_text(entry.path()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

CommandLineTest::CommandLineTest() {
  setenv("XDG_DATA_HOME", (folder_ / "data").c_str(), 1);
  setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
}

std::string CommandLineTest::model() const {
  return std::string(EMBER_SOURCE_DIR) + "/models/demo";
}

CommandResult CommandLineTest::emberkv(const std::vector<std::string>& arguments,
                                       const std::string& input) {
  std::vector<std::string> command = {program_path()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Result<CommandResult> result = run_command(command, input);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? std::move(result).value() : CommandResult{-1, {}, {}};
}

std::vector<std::string> CommandLineTest::generate_command(const std::string& store,
                                                           const std::string& prompt,
                                                           int max_tokens) const {
  return {"generate",      "--json",   "--model", model(),        "--store",
          store,           "--prompt", prompt,    "--max-tokens", std::to_string(max_tokens),
          "--temperature", "0"};
}

AnswerEvent CommandLineTest::generate(const std::string& store, const std::string& prompt,
                                      int max_tokens) {
  const CommandResult result = emberkv(generate_command(store, prompt, max_tokens));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  const Result<AnswerEvent> answer = parse_answer(result.output);
  EXPECT_TRUE(answer.ok()) << answer.error().message;
  return answer.ok() ? *answer : AnswerEvent{};
}

void CommandLineTest::expect_refused(const CommandResult& result,
                                     const std::vector<std::string>& names) {
  EXPECT_EQ(result.exit_code, 1) << result.errors;
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  EXPECT_EQ(result.errors.rfind("emberkv: ", 0), 0u) << result.errors;
  for (const std::string& name : names) {
    EXPECT_NE(result.errors.find(name), std::string::npos)
        << "'" << name << "' is not named in: " << result.errors;
  }
}

std::string CommandLineTest::write(const std::string& name, const std::string& text) {
  const std::string path = folder_ / name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string CommandLineTest::model_with_config(const std::string& from, const std::string& to) {
  const std::string copy = folder_ / "model";
  fs::create_directory(copy);
  for (const auto& entry : fs::directory_iterator(model())) {
    if (entry.path().filename() != "config.json") {
      fs::create_symlink(entry.path(), copy / entry.path().filename());
    }
  }
  std::string config = file_text(model() + "/config.json");
  const size_t at = config.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) config.replace(at, from.size(), to);
  write("model/config.json", config);
  return copy;
}

}  // namespace ember
