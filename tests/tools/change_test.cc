// rm, gc, repair and quarantine as a user meets them on the command line.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/command_line.h"
#include "tests/tools/pseudo_terminal.h"
#include "tools/journey_demo/child_process.h"

namespace ember {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ChangeTest : public CommandLineTest {
 protected:
  Json run(std::vector<std::string> words, int exit_code = 0) {
    words.insert(words.end(), {"--json", "--store", store_});
    const CommandResult result = emberkv(words);
    EXPECT_EQ(result.exit_code, exit_code) << result.errors << result.output;
    std::istringstream lines(result.output);
    std::string last, line;
    while (std::getline(lines, line)) last = line;
    return last.empty() ? Json() : Json::parse(last);
  }
  uint64_t blocks() { return run({"stat"}).at("blocks"); }
  std::string first_hash(const std::string& prompt_word = {}) {
    const CommandResult result = emberkv({"ls", "--json", "--limit", "0", "--store", store_});
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);) {
      const Json row = Json::parse(line);
      const std::string text = row.value("text", "");
      if (row.at("position") == 0 && text.find(prompt_word) != std::string::npos) {
        return row.at("hash");
      }
    }
    return {};
  }
  std::vector<std::string> chat_words() const {
    return {program_path(), "chat",    "--json",       "--model", model(),
            "--store",      store_,    "--max-tokens", "4"};
  }
  std::string a_file(const std::string& database, const std::string& ending) {
    for (const auto& entry : fs::directory_iterator(store_ + "/" + database)) {
      if (entry.path().string().ends_with(ending)) return entry.path().string();
    }
    return {};
  }

  const std::string store_ = folder_ / "store";
  const std::string prompt_ = some_text(1, 30);
  const std::string other_ = some_text(2, 30);
};

TEST_F(ChangeTest, RmTakesAPrefixAndNothingElseAndAsksFirst) {
  generate(store_, prompt_);
  const uint64_t first = blocks();
  const std::string hash = first_hash();
  generate(store_, other_);
  const uint64_t both = blocks();
  ASSERT_GT(both, first);
  const CommandResult unasked = emberkv({"rm", "--prefix", hash, "--store", store_});
  EXPECT_EQ(unasked.exit_code, 2);
  EXPECT_NE(unasked.errors.find("--yes"), std::string::npos) << unasked.errors;
  EXPECT_EQ(emberkv({"rm", "--yes", "--store", store_}).exit_code, 2);
  const Json plan = run({"rm", "--prefix", hash, "--dry-run"});
  EXPECT_EQ(plan.at("blocks"), first);
  EXPECT_EQ(blocks(), both);
  const Json done = run({"rm", "--prefix", hash, "--yes"});
  EXPECT_EQ(done.at("blocks"), plan.at("blocks"));
  EXPECT_EQ(done.at("tails"), plan.at("tails"));
  EXPECT_EQ(done.at("stored_bytes"), plan.at("stored_bytes"));
  EXPECT_EQ(blocks(), both - first);
  EXPECT_EQ(run({"verify"}).at("damaged"), 0);
  EXPECT_LE(generate(store_, prompt_).disk_tokens, 1u);  // the first token is all prompts'
  EXPECT_GT(generate(store_, other_).disk_tokens, 0u);
}

// A number that wrapped would be the largest there is, and all blocks be used less often than that.
TEST_F(ChangeTest, WhatIsNoWholeNumberRemovesNothing) {
  generate(store_, prompt_);
  const uint64_t all = blocks();
  for (const char* number : {"-1", "99999999999999999999999", "0x10", "1e9", ""}) {
    const CommandResult refused =
        emberkv({"rm", "--max-hits", number, "--yes", "--store", store_});
    EXPECT_EQ(refused.exit_code, 2) << number;
    EXPECT_NE(refused.errors.find("--max-hits"), std::string::npos) << refused.errors;
  }
  EXPECT_EQ(emberkv({"ls", "--limit", "-1", "--store", store_}).exit_code, 2);
  EXPECT_EQ(emberkv({"conversations", "list", "--limit", "-1", "--store", store_}).exit_code, 2);
  EXPECT_EQ(blocks(), all);
  // Not octal.
  EXPECT_EQ(run({"rm", "--min-hits", "00", "--dry-run"}).at("blocks"), all);
}

TEST_F(ChangeTest, KeepBlocksSaysSomethingOfATalkOnly) {
  generate(store_, prompt_);
  const uint64_t all = blocks();
  const CommandResult refused =
      emberkv({"rm", "--max-hits", "9", "--keep-blocks", "--yes", "--store", store_});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.errors.find("--conversation"), std::string::npos) << refused.errors;
  EXPECT_EQ(blocks(), all);
}

// Asked on a terminal, with standard output elsewhere: there is JSON and nothing else.
TEST_F(ChangeTest, RmAsksBesideItsOutput) {
  generate(store_, prompt_);
  const uint64_t all = blocks();
  const std::string file = folder_ / "rm.jsonl";
  for (const auto& [key, code] : {std::pair("n\n", 1), std::pair("y\n", 0)}) {
    PseudoTerminal terminal({"/bin/sh", "-c", program_path() + " rm --max-hits 9 --json --store " +
                                                  store_ + " > " + file},
                            {});
    EXPECT_TRUE(terminal.shows("[y/N]")) << terminal.shown();
    EXPECT_NE(terminal.shown().find(std::to_string(all) + " block"), std::string::npos);
    terminal.press(key);
    EXPECT_EQ(terminal.wait(), code) << terminal.shown();
    std::istringstream lines(file_text(file));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(Json::parse(line, nullptr, false).is_discarded()) << line;
    }
  }
  EXPECT_EQ(blocks(), 0u);
}

TEST_F(ChangeTest, RmByAgeAndScope) {
  generate(store_, prompt_);
  EXPECT_EQ(run({"rm", "--unused-for", "1h", "--yes"}).at("blocks"), 0);
  const uint64_t all = blocks();
  EXPECT_EQ(run({"rm", "--unused-for", "1s", "--scope", "shared", "--dry-run"}).at("dry_run"),
            true);
  // A scope alone is what forget takes.
  EXPECT_EQ(run({"rm", "--scope", "shared", "--yes"}).at("blocks"), all);
  EXPECT_EQ(blocks(), 0u);
}

TEST_F(ChangeTest, RmOfAConversationLeavesWhatOthersShare) {
  const std::string system = some_text(3, 20);
  std::vector<std::string> chat = {"chat",    "--model", model(),        "--store", store_,
                                   "--system", system,    "--max-tokens", "8"};
  ASSERT_EQ(emberkv(chat, some_text(4, 10) + "\n").exit_code, 0);
  ASSERT_EQ(emberkv(chat, some_text(5, 10) + "\n").exit_code, 0);
  const uint64_t both = blocks();
  const Json plan = run({"rm", "--conversation", "last", "--dry-run"});
  EXPECT_GT(plan.at("shared"), 0);
  EXPECT_GT(plan.at("blocks"), 0);
  const Json done = run({"rm", "--conversation", "last", "--yes"});
  EXPECT_EQ(done.at("blocks"), plan.at("blocks"));
  EXPECT_EQ(run({"stat"}).at("conversations"), 1);
  EXPECT_EQ(blocks(), both - done.at("blocks").get<uint64_t>());
  EXPECT_EQ(run({"verify"}).at("unreachable"), 0);
  const Json text_only = run({"rm", "--conversation", "last", "--keep-blocks", "--yes"});
  EXPECT_EQ(text_only.at("blocks"), 0);
  EXPECT_EQ(run({"stat"}).at("conversations"), 0);
  EXPECT_EQ(run({"rm", "--conversation", "last", "--yes"}, 1), Json());
}

// A scope alone is forgetting; with another choice beside it nothing but what passes both goes.
TEST_F(ChangeTest, RmTakesNothingThatWasNotChosen) {
  generate(store_, prompt_);
  const uint64_t all = blocks();
  for (const char* choice : {"--pinned", "--leased", "--damaged", "--unreachable"}) {
    EXPECT_EQ(run({"rm", "--scope", "shared", choice, "--yes"}).at("blocks"), 0) << choice;
  }
  const CommandResult kept =
      emberkv({"rm", "--max-hits", "9", "--keep-blocks", "--yes", "--store", store_});
  EXPECT_EQ(kept.exit_code, 2);
  for (const char* number : {"-1", "99999999999999999999", "0x10", "1.5", ""}) {
    const CommandResult result =
        emberkv({"rm", "--max-hits", number, "--yes", "--store", store_});
    EXPECT_EQ(result.exit_code, 2) << number << result.output;
  }
  EXPECT_EQ(blocks(), all);
}

TEST_F(ChangeTest, WhatIsAskedOnATerminalIsNoPartOfTheJson) {
  generate(store_, prompt_);
  const uint64_t all = blocks();
  const std::string file = folder_ / "out.jsonl";
  PseudoTerminal terminal({"/bin/sh", "-c",
                           program_path() + " rm --max-hits 9 --json --store " + store_ + " > " +
                               file},
                          {});
  EXPECT_TRUE(terminal.shows("[y/N]")) << terminal.shown();
  EXPECT_NE(terminal.shown().find(std::to_string(all) + " blocks"), std::string::npos)
      << terminal.shown();
  terminal.press("n\n");
  EXPECT_EQ(terminal.wait(), 1);
  std::istringstream lines(file_text(file));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_FALSE(Json::parse(line, nullptr, false).is_discarded()) << line;
  }
  EXPECT_EQ(blocks(), all);
}

TEST_F(ChangeTest, ReadOnlyChangesNothing) {
  generate(store_, prompt_);
  fs::remove(store_ + "/blocks/CURRENT");
  const auto before = snapshot(store_);
  expect_refused(emberkv({"repair", "--read-only", "--store", store_}), {"--read-only"});
  expect_refused(emberkv({"quarantine", "clear", "--yes", "--read-only", "--store", store_}),
                 {"--read-only"});
  expect_refused(emberkv({"import", "none.tar", "--read-only", "--store", store_}),
                 {"--read-only"});
  EXPECT_EQ(snapshot(store_), before);
}

// The ballast of a store that may be larger is no reason to drop blocks.
TEST_F(ChangeTest, GcBringsAStoreWithinALimitThatItsBlocksFit) {
  constexpr uint64_t kLimit = 64u << 20;
  generate(store_, prompt_);
  const uint64_t all = blocks();
  ASSERT_GT(run({"stat"}).at("disk_bytes"), kLimit);
  const Json looked = run({"gc", "--disk-bytes", "64MiB", "--dry-run"});
  const Json done = run({"gc", "--disk-bytes", "64MiB"});
  EXPECT_EQ(looked.at("blocks"), 0);
  EXPECT_EQ(done.at("blocks"), 0);
  EXPECT_LE(done.at("bytes_after"), kLimit);
  EXPECT_EQ(blocks(), all);
  EXPECT_EQ(run({"verify"}).at("damaged"), 0);
}

TEST_F(ChangeTest, GcGivesBackWhatRmLeft) {
  generate(store_, prompt_);
  generate(store_, other_);
  run({"rm", "--prefix", first_hash(), "--yes"});
  const Json plan = run({"gc", "--dry-run"});
  EXPECT_GT(plan.at("dead_bytes"), 0);
  const Json done = run({"gc"});
  EXPECT_EQ(done.at("epochs"), plan.at("epochs"));
  EXPECT_EQ(done.at("dead_bytes"), plan.at("dead_bytes"));
  EXPECT_LT(done.at("bytes_after"), done.at("bytes_before"));
  EXPECT_EQ(run({"verify"}).at("damaged"), 0);
  EXPECT_EQ(run({"gc", "--dry-run"}).at("epochs"), 0);
}

TEST_F(ChangeTest, RepairMendsWhatVerifyFindsAndSaysWhatItDid) {
  generate(store_, prompt_);
  const uint64_t all = blocks();
  EXPECT_EQ(run({"repair"}).at("found"), false);
  const std::string table = a_file("blocks", ".sst");
  fs::resize_file(table, fs::file_size(table) / 2);
  const CommandResult broken = emberkv({"stat", "--store", store_});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_NE(broken.errors.find("emberkv repair"), std::string::npos) << broken.errors;
  EXPECT_NE(emberkv({"verify", "--store", store_}).errors.find("emberkv repair"),
            std::string::npos);
  const Json plan = run({"repair", "--dry-run"});
  EXPECT_EQ(plan.at("found"), true);
  EXPECT_EQ(emberkv({"stat", "--store", store_}).exit_code, 1);
  const Json done = run({"repair", "--verify"});
  EXPECT_EQ(done.at("found"), true);
  EXPECT_EQ(done.at("not_mended"), Json::array());
  EXPECT_EQ(done.at("renewed").at("kept_files").size(), 1u);
  EXPECT_EQ(run({"repair", "--verify"}).at("found"), false);
  EXPECT_EQ(run({"verify"}).at("damaged"), 0);
  generate(store_, prompt_);
  EXPECT_EQ(blocks(), all);

  const CommandResult listed = emberkv({"quarantine", "list", "--json", "--store", store_});
  const Json kept = Json::parse(listed.output.substr(0, listed.output.find('\n')));
  EXPECT_EQ(kept.at("what"), "file");
  const std::string file = kept.at("file");
  EXPECT_NE(run({"quarantine", "show", file}).at("path").get<std::string>().find(file),
            std::string::npos);
  EXPECT_EQ(emberkv({"quarantine", "clear", "--store", store_}).exit_code, 2);
  EXPECT_EQ(run({"quarantine", "clear", "--dry-run"}).at("files"), 1);
  EXPECT_EQ(run({"quarantine", "clear", "--yes"}).at("files"), 1);
  EXPECT_EQ(emberkv({"quarantine", "list", "--json", "--store", store_}).output, "");
}

TEST_F(ChangeTest, WhoCannotChangeAStoreSaysWhatIsNext) {
  generate(store_, prompt_);
  fs::remove(store_ + "/blocks/CURRENT");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"rm", "--max-hits", "9", "--yes"}, {"gc"}, {"forget", "--all"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--store", store_});
    expect_refused(emberkv(all), {"CURRENT", "emberkv repair"});
  }
}

TEST_F(ChangeTest, ARepairThatIsKilledIsRunAgain) {
  generate(store_, prompt_);
  const uint64_t all = blocks();
  for (const char* seconds : {"0.02", "0.05", "0.1", "0.2"}) {
    fs::remove(store_ + "/blocks/CURRENT");
    const Result<CommandResult> killed = run_command(
        {"timeout", "-s", "KILL", seconds, program_path(), "repair", "--store", store_});
    ASSERT_TRUE(killed.ok()) << killed.error().message;
    EXPECT_EQ(run({"repair", "--verify"}).at("not_mended"), Json::array());
    EXPECT_EQ(run({"verify"}).at("damaged"), 0);
    EXPECT_EQ(blocks(), all);
    EXPECT_FALSE(fs::exists(store_ + "/blocks.new"));
  }
}

TEST_F(ChangeTest, RepairProvesBlocksAndGivesUpWrongOnes) {
  generate(store_, prompt_);
  const std::string blob = a_file("blocks", ".blob");
  std::string bytes = file_text(blob);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(blob, std::ios::binary) << bytes;
  EXPECT_EQ(run({"verify"}, 1).at("damaged"), 1);
  EXPECT_EQ(run({"repair", "--verify", "--dry-run"}).at("proof").at("wrong"), 1);
  const Json done = run({"repair", "--verify"});
  EXPECT_EQ(done.at("proof").at("wrong"), 1);
  const Json verified = run({"verify"});
  EXPECT_EQ(verified.at("damaged"), 0);
  EXPECT_EQ(verified.at("quarantined"), 1);
  EXPECT_EQ(run({"repair", "--verify"}).at("found"), false);
  const AnswerEvent answer = generate(store_, prompt_);
  EXPECT_GT(answer.cached_tokens(), 0u);
  EXPECT_EQ(run({"verify"}).at("holes"), 0);
}

TEST_F(ChangeTest, WhatARunningProcessGivesUpIsNotFoundAgain) {
  generate(store_, prompt_);
  const std::string blob = a_file("blocks", ".blob");
  std::string bytes = file_text(blob);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  std::ofstream(blob, std::ios::binary) << bytes;
  Result<std::unique_ptr<ChatClient>> holder = ChatClient::start(chat_words());
  ASSERT_TRUE(holder.ok()) << holder.error().message;
  EXPECT_EQ(run({"repair", "--verify", "--dry-run"}).at("proof").at("wrong"), 1);
  EXPECT_EQ(run({"repair", "--verify"}).at("proof").at("wrong"), 1);
  EXPECT_EQ(run({"repair", "--verify"}).at("found"), false);
  EXPECT_EQ(run({"verify"}).at("damaged"), 0);
  EXPECT_TRUE((*holder)->ask("Hello").ok());
  EXPECT_TRUE((*holder)->finish().ok());
  EXPECT_EQ(run({"repair", "--verify"}).at("found"), false);
  generate(store_, prompt_);
  EXPECT_EQ(run({"verify"}).at("holes"), 0);
}

TEST_F(ChangeTest, ChangesRunInTheProcessThatHoldsTheStore) {
  generate(store_, prompt_);
  const std::string hash = first_hash();
  Result<std::unique_ptr<ChatClient>> holder = ChatClient::start(chat_words());
  ASSERT_TRUE(holder.ok()) << holder.error().message;
  ASSERT_TRUE((*holder)->ask("Hello").ok());
  const std::string open = (*holder)->ready().conversation;
  const Json gone = run({"rm", "--prefix", hash, "--yes"});
  EXPECT_GT(gone.at("blocks"), 0);
  const CommandResult refused =
      emberkv({"rm", "--conversation", open, "--yes", "--store", store_});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.errors.find("is open"), std::string::npos) << refused.errors;
  EXPECT_GT(run({"gc"}).at("epochs"), 0);
  expect_refused(emberkv({"pin", "0", "--for", "31d", "--store", store_}), {"--for", "30d"});
  EXPECT_EQ(run({"repair", "--verify"}).at("not_mended"), Json::array());
  for (const char* whose : {"--all", "--scope=shared"}) {
    expect_refused(emberkv({"forget", whose, "--store", store_}), {open, "is open"});
  }
  EXPECT_TRUE((*holder)->ask("And now?").ok());
  EXPECT_TRUE((*holder)->finish().ok());
  EXPECT_EQ(run({"verify"}).at("damaged"), 0);
  EXPECT_LE(generate(store_, prompt_).disk_tokens, 1u);  // the first token is all prompts'
}

}  // namespace
}  // namespace ember
