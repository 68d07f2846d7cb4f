// rm, gc, repair and quarantine as a user meets them on the command line.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/command_line.h"
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
  EXPECT_EQ(run({"repair", "--verify"}).at("not_mended"), Json::array());
  EXPECT_TRUE((*holder)->ask("And now?").ok());
  EXPECT_TRUE((*holder)->finish().ok());
  EXPECT_EQ(run({"verify"}).at("damaged"), 0);
  EXPECT_LE(generate(store_, prompt_).disk_tokens, 1u);  // the first token is all prompts'
}

}  // namespace
}  // namespace ember
