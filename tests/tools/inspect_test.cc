// stat, ls and verify: what they tell of a store, and that they only read.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/prng.h"
#include "tests/tools/command_line.h"

namespace ember {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class InspectTest : public CommandLineTest {
 protected:
  InspectTest() { answer_ = generate(store_, prompt_); }

  Json inspect(const std::string& command, int exit_code = 0) {
    const CommandResult result = emberkv({command, "--json", "--store", store_});
    EXPECT_EQ(result.exit_code, exit_code) << result.errors << result.output;
    return Json::parse(result.output);
  }
  // The file of the most bytes below the store whose name ends with `ending`.
  std::string largest(const std::string& ending) {
    std::string found;
    for (const auto& entry : fs::recursive_directory_iterator(store_)) {
      if (!entry.is_regular_file() || !entry.path().string().ends_with(ending)) continue;
      if (found.empty() || entry.file_size() > fs::file_size(found)) found = entry.path();
    }
    EXPECT_NE(found, "") << ending;
    return found;
  }
  void flip_byte(const std::string& path, size_t at) {
    std::string bytes = file_text(path);
    ASSERT_LT(at, bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    write(path.substr(folder_.path().size() + 1), bytes);
  }

  const std::string store_ = folder_ / "store";
  const std::string prompt_ = some_text(1, 30);
  AnswerEvent answer_;
};

TEST_F(InspectTest, StatCountsWhatGenerateLeft) {
  const Json stat = inspect("stat");
  const uint64_t tokens = answer_.cached_tokens();
  EXPECT_EQ(stat.at("state"), "ok");
  EXPECT_EQ(stat.at("version"), 2);
  EXPECT_EQ(stat.at("encrypted"), false);
  EXPECT_EQ(stat.at("tokens"), tokens);
  EXPECT_EQ(stat.at("blocks"), tokens / 64);
  EXPECT_EQ(stat.at("tails"), tokens % 64 == 0 ? 0 : 1);
  EXPECT_EQ(stat.at("raw_bytes"), tokens * 6 * 320);
  EXPECT_GT(stat.at("compression_ratio"), 1.1);
  EXPECT_GT(stat.at("disk_bytes"), stat.at("stored_bytes"));
  EXPECT_EQ(stat.at("unreadable_records"), 0);
  EXPECT_EQ(stat.at("holder_pid"), 0);
}

TEST_F(InspectTest, LsPrintsParentsBeforeChildren) {
  const CommandResult result = emberkv({"ls", "--json", "--limit", "0", "--store", store_});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  std::istringstream lines(result.output);
  std::string parent;
  uint64_t tokens = 0;
  uint64_t position = 0;
  for (std::string line; std::getline(lines, line); ++position) {
    const Json row = Json::parse(line);
    EXPECT_EQ(row.at("position"), position);
    if (position > 0) {
      EXPECT_EQ(row.at("parent"), parent);
    }
    parent = row.at("hash");
    tokens += row.at("tokens").get<uint64_t>();
  }
  EXPECT_EQ(tokens, answer_.cached_tokens());
  const CommandResult table = emberkv({"ls", "--limit", "1", "--store", store_});
  EXPECT_EQ(std::count(table.output.begin(), table.output.end(), '\n'), 3) << table.output;
}

TEST_F(InspectTest, ConversationsAreListed) {
  ASSERT_EQ(emberkv({"chat", "--model", model(), "--store", store_, "--max-tokens", "2"}, "Hello\n")
                .exit_code,
            0);
  const CommandResult result = emberkv({"ls", "--conversations", "--json", "--store", store_});
  const Json row = Json::parse(result.output);
  EXPECT_EQ(row.at("turns"), 1);
  EXPECT_EQ(row.at("conversation").get<std::string>().size(), 16u);
  EXPECT_EQ(inspect("stat").at("conversations"), 1);
}

TEST_F(InspectTest, VerifyOfAnIntactStoreReadsEveryGroup) {
  const Json verify = inspect("verify");
  const Json stat = inspect("stat");
  EXPECT_EQ(verify.at("blocks"),
            stat.at("blocks").get<uint64_t>() + stat.at("tails").get<uint64_t>());
  EXPECT_GE(verify.at("groups"), verify.at("blocks"));
  EXPECT_EQ(verify.at("damaged"), 0);
  EXPECT_EQ(verify.at("unreadable_files"), 0);
  EXPECT_EQ(verify.at("unreachable"), 0);
}

TEST_F(InspectTest, InspectionOnlyReads) {
  const auto before = snapshot(store_);
  inspect("stat");
  inspect("verify");
  emberkv({"ls", "--store", store_});
  EXPECT_TRUE(snapshot(store_) == before);
}

TEST_F(InspectTest, AFlippedLatentIsDamageAndRecomputed) {
  const std::string blob = largest(".blob");
  flip_byte(blob, fs::file_size(blob) / 2);
  const Json verify = inspect("verify", 1);
  EXPECT_GE(verify.at("damaged"), 1);
  const AnswerEvent again = generate(store_, prompt_);
  EXPECT_EQ(again.token_ids, answer_.token_ids);
  EXPECT_GT(again.computed_tokens, 1u);
  EXPECT_GE(again.damaged_blocks, 1u);
  EXPECT_EQ(generate(store_, prompt_).computed_tokens, 1u) << "recomputing heals the block";
}

TEST_F(InspectTest, AStoreThatCannotBeOpenedIsReportedByAll) {
  flip_byte(store_ + "/IDENTITY", 20);
  const auto before = snapshot(store_);
  const CommandResult result = emberkv(generate_command(store_, prompt_));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  const Json json = Json::parse(result.output);
  EXPECT_EQ(json.at("token_ids"), Json(answer_.token_ids));
  EXPECT_EQ(json.at("store").at("state"), "unusable");
  EXPECT_NE(json.at("store").at("reason"), "");
  EXPECT_EQ(inspect("stat", 1).at("state"), "unusable");
  EXPECT_NE(inspect("verify", 1).at("reason"), "");
  EXPECT_TRUE(snapshot(store_) == before);
}

// After any one byte of any file was changed, generate gives the same tokens; and where it says
// that the store is unusable, so do stat and verify.
TEST_F(InspectTest, AnyFlippedByteIsSurvived) {
  const std::string kept = folder_ / "kept";
  fs::copy(store_, kept, fs::copy_options::recursive);
  const std::vector<std::pair<std::string, std::string>> files = snapshot(store_);
  Prng prng(11);
  for (const auto& [path, bytes] : files) {
    if (bytes.empty()) continue;
    const size_t at = prng.below(bytes.size());
    SCOPED_TRACE(path.substr(store_.size()) + " byte " + std::to_string(at));
    flip_byte(path, at);
    const CommandResult verify = emberkv({"verify", "--json", "--store", store_});
    const CommandResult result = emberkv(generate_command(store_, prompt_));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    const Result<AnswerEvent> answer = parse_answer(result.output);
    EXPECT_TRUE(answer.ok());
    if (answer) {
      EXPECT_EQ(answer->token_ids, answer_.token_ids);
      if (answer->store_state == "unusable" || answer->damaged_blocks > 0) {
        EXPECT_EQ(verify.exit_code, 1) << verify.output << result.errors;
      }
    }
    fs::remove_all(store_);
    fs::copy(kept, store_, fs::copy_options::recursive);
  }
}

}  // namespace
}  // namespace ember
