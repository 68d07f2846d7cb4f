// stat, ls and verify: what they tell of a store, and that they only read.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
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
  // A line of a command's output, from 0.
  std::string line_of(const std::vector<std::string>& words, size_t number) {
    const CommandResult result = emberkv(words);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    std::istringstream lines(result.output);
    std::string line;
    for (size_t i = 0; i <= number; ++i) std::getline(lines, line);
    return line;
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

TEST_F(InspectTest, StatTellsOfTheLastHourWhereThereIsALog) {
  EXPECT_FALSE(inspect("stat").contains("requests"));
  std::vector<std::string> words = generate_command(store_, prompt_, 4);
  words.insert(words.end(), {"--access-log", "1MiB"});
  ASSERT_EQ(emberkv(words).exit_code, 0);
  ASSERT_EQ(emberkv(words).exit_code, 0);
  const Json stat = inspect("stat");
  ASSERT_EQ(stat.at("requests").size(), 3u);
  for (const Json& window : stat.at("requests")) {
    EXPECT_EQ(window.at("requests"), 2);
    const uint64_t restored = window.at("restored_tokens").at("disk");
    EXPECT_GE(restored, 2 * (answer_.cached_tokens() - 8));
    EXPECT_GE(window.at("tokens"), restored);
  }
  EXPECT_NE(emberkv({"stat", "--store", store_}).output.find("last hour"), std::string::npos);
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
  const CommandResult result = emberkv({"conversations", "list", "--json", "--store", store_});
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

TEST_F(InspectTest, APartCanBeVerifiedAlone) {
  const Json rows = Json::parse(line_of({"ls", "--json", "--limit", "1", "--store", store_}, 0));
  const CommandResult one = emberkv({"verify", "--json", "--sample", "2", "--store", store_});
  EXPECT_EQ(Json::parse(one.output).at("blocks"), 2);
  EXPECT_EQ(Json::parse(one.output).at("whole"), false);
  const std::string root = rows.at("hash");
  const CommandResult all =
      emberkv({"verify", "--json", "--prefix", root.substr(0, 20), "--store", store_});
  const Json stat = inspect("stat");
  EXPECT_EQ(Json::parse(all.output).at("blocks"),
            stat.at("blocks").get<uint64_t>() + stat.at("tails").get<uint64_t>());
}

TEST_F(InspectTest, BlocksAreShownWithTheTextOfTheStoresTokenizer) {
  const CommandResult result = emberkv({"ls", "--json", "--limit", "0", "--store", store_});
  std::istringstream lines(result.output);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    text += Json::parse(line).at("text").get<std::string>();
  }
  EXPECT_NE(text.find(prompt_.substr(0, 500)), std::string::npos) << text;
  const CommandResult bare =
      emberkv({"ls", "--json", "--no-text", "--limit", "1", "--store", store_});
  EXPECT_FALSE(Json::parse(bare.output).contains("text"));
}

TEST_F(InspectTest, LsSortsFiltersAndStreams) {
  const auto count = [this](std::vector<std::string> flags) {
    std::vector<std::string> words = {"ls", "--json", "--limit", "0", "--store", store_};
    words.insert(words.end(), flags.begin(), flags.end());
    const CommandResult result = emberkv(words);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return std::count(result.output.begin(), result.output.end(), '\n');
  };
  const Json stat = inspect("stat");
  const auto blocks = stat.at("blocks").get<int64_t>();
  const auto tails = stat.at("tails").get<int64_t>();
  EXPECT_EQ(count({}), blocks + tails);
  for (const char* order : {"none", "age", "hits", "bytes", "tokens"}) {
    EXPECT_EQ(count({"--sort", order}), blocks + tails) << order;
  }
  EXPECT_EQ(count({"--tails"}), tails);
  EXPECT_EQ(count({"--blocks", "--tier", "disk", "--sort", "none"}), blocks);
  EXPECT_EQ(count({"--tier", "host"}), 0);
  expect_refused(emberkv({"ls", "--scope", "acme", "--store", store_}), {"acme"});
  expect_refused(emberkv({"du", "--namespace", "0123456789", "--store", store_}), {"0123456789"});
  EXPECT_GT(tails, 0);
  EXPECT_EQ(count({"--unused-for", "1h"}), 0) << "a tail is as young as what it hangs on";
  EXPECT_EQ(emberkv({"ls", "--sort", "colour", "--store", store_}).exit_code, 2);
  EXPECT_EQ(emberkv({"ls", "--prefix", "xyz", "--store", store_}).exit_code, 1);
}

TEST_F(InspectTest, ShowDescribesABlockWhole) {
  const Json row = Json::parse(line_of({"ls", "--json", "--limit", "2", "--store", store_}, 1));
  const std::string hash = row.at("hash");
  const CommandResult result = emberkv({"show", hash.substr(0, 24), "--json", "--store", store_});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const Json show = Json::parse(result.output);
  EXPECT_EQ(show.at("hash"), hash);
  EXPECT_EQ(show.at("good"), true);
  EXPECT_EQ(show.at("tokens").size(), 64u);
  EXPECT_EQ(show.at("text"), row.at("text"));
  EXPECT_EQ(show.at("values").at("count"), 64 * 6 * 160);
  EXPECT_EQ(show.at("values").at("nan"), 0);
  uint64_t counted = 0;
  for (const Json& bin : show.at("values").at("histogram")) counted += bin.get<uint64_t>();
  EXPECT_EQ(counted, 64u * 6 * 160);
  EXPECT_EQ(emberkv({"show", hash, "--store", store_}).exit_code, 0);
  expect_refused(emberkv({"show", "0123456789abcdef0123", "--store", store_}),
                 {"0123456789abcdef"});
}

TEST_F(InspectTest, AnEmptyHashIsRefused) {
  expect_refused(emberkv({"show", "", "--store", store_}), {"empty"});
}

TEST_F(InspectTest, NothingOfAPromptMovesTheTerminal) {
  ASSERT_EQ(emberkv({"chat", "--model", model(), "--store", store_, "--max-tokens", "2", "--system",
                     "a\x1b[31mb\xe2\x80\xae"},
                    "c\x1b]0;x\x07\n")
                .exit_code,
            0);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"conversations", "show", "last"},
                                             {"conversations", "list"},
                                             {"ls"},
                                             {"tree"},
                                             {"du"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--store", store_});
    const std::string text = emberkv(all).output;
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << words[0];
    EXPECT_EQ(text.find('\x07'), std::string::npos) << words[0];
    EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos) << words[0];
  }
}

TEST_F(InspectTest, ADamagedGroupIsNamedByShow) {
  const std::string blob = largest(".blob");
  flip_byte(blob, fs::file_size(blob) / 2);
  uint64_t damaged = 0;
  const CommandResult rows =
      emberkv({"ls", "--json", "--no-text", "--limit", "0", "--store", store_});
  std::istringstream lines(rows.output);
  for (std::string line; std::getline(lines, line);) {
    const std::string hash = Json::parse(line).at("hash");
    const CommandResult result = emberkv({"show", hash, "--json", "--store", store_});
    const Json show = Json::parse(result.output);
    EXPECT_EQ(result.exit_code, show.at("good") == true ? 0 : 1);
    damaged += show.at("good") == true ? 0u : 1u;
  }
  EXPECT_EQ(damaged, 1u);
}

TEST_F(InspectTest, TreeAndDuAddUpToTheStore) {
  const Json stat = inspect("stat");
  const Json tree = Json::parse(line_of({"tree", "--json", "--store", store_}, 0));
  EXPECT_EQ(tree.at("tokens"), stat.at("tokens"));
  EXPECT_EQ(tree.at("stored_bytes"), stat.at("stored_bytes"));
  EXPECT_EQ(tree.at("depth"), 0);
  for (const char* by : {"prefix", "scope", "namespace"}) {
    const Json du = Json::parse(line_of({"du", "--by", by, "--json", "--store", store_}, 0));
    EXPECT_EQ(du.at("stored_bytes"), stat.at("stored_bytes")) << by;
    EXPECT_TRUE(du.contains(by));
  }
  const std::string text = emberkv({"tree", "--store", store_}).output;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST_F(InspectTest, ExplainAgreesWithWhatARunThenRestores) {
  const std::string known = prompt_.substr(0, prompt_.size() / 2);
  const std::string other = known + some_text(77, 3);
  const CommandResult result = emberkv({"explain", "--prompt", other, "--json", "--store", store_});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const Json explain = Json::parse(result.output);
  EXPECT_EQ(explain.at("end"), "differs");
  EXPECT_GT(explain.at("hit_tokens"), 64);
  EXPECT_NE(explain.at("prompt_text"), explain.at("stored_text"));
  const CommandResult run = emberkv([&] {
    std::vector<std::string> words = generate_command(store_, other, 1);
    words.insert(words.end(), {"--restore", "always"});
    return words;
  }());
  const Json answer = Json::parse(run.output);
  EXPECT_EQ(explain.at("prompt_tokens"), answer.at("prompt_tokens"));
  EXPECT_EQ(explain.at("hit_tokens"), answer.at("restored_tokens").at("disk"));
  EXPECT_EQ(explain.at("computed_tokens"), answer.at("computed_tokens"));
}

TEST_F(InspectTest, ExplainNamesTheFieldThatDiffers) {
  const std::string other = folder_ / "other";
  std::vector<std::string> words = generate_command(other, "Once upon a time", 1);
  words.insert(words.end(), {"--cache-dtype", "fp8"});
  ASSERT_EQ(emberkv(words).exit_code, 0);
  words = generate_command(other, prompt_, 1);
  ASSERT_EQ(emberkv(words).exit_code, 0);
  // Two namespaces; the one that is asked about knows nothing of the prompt.
  const std::vector<std::string> du = {"du", "--by", "namespace", "--json", "--store", other};
  const std::string knows = Json::parse(line_of(du, 0)).at("namespace");
  const std::string asked = Json::parse(line_of(du, 1)).at("namespace");
  const CommandResult result =
      emberkv({"explain", "--prompt", prompt_, "--namespace", asked, "--json", "--store", other});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const Json explain = Json::parse(result.output);
  EXPECT_LT(explain.at("hit_tokens"), 64);
  const Json& rival = explain.at("other_namespace");
  EXPECT_EQ(rival.at("namespace"), knows);
  std::set<std::string> fields;
  for (const Json& one : rival.at("differs")) fields.insert(one.at("field"));
  EXPECT_TRUE(fields.contains("cache_dtype")) << rival.dump();
  EXPECT_FALSE(fields.contains("weights")) << rival.dump();
}

TEST_F(InspectTest, ExplainTellsWhatTheTemplateDrops) {
  const std::string messages = write("messages.json", R"([{"role": "user", "content": "Hello"},
      {"role": "assistant", "content": "</think>Yes", "reasoning_content": "I think so"},
      {"role": "user", "content": "Again"}])");
  const CommandResult result =
      emberkv({"explain", "--messages-file", messages, "--json", "--store", store_});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_FALSE(Json::parse(result.output).at("dropped").empty()) << result.output;
}

TEST_F(InspectTest, AConversationIsShownAndExplained) {
  ASSERT_EQ(emberkv({"chat", "--model", model(), "--store", store_, "--max-tokens", "4", "--system",
                     "Be kind."},
                    "Hello\nAnd now?\n")
                .exit_code,
            0);
  const CommandResult result =
      emberkv({"conversations", "show", "last", "--json", "--ids", "--store", store_});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const Json talk = Json::parse(result.output);
  EXPECT_EQ(talk.at("system"), "Be kind.");
  ASSERT_EQ(talk.at("turns").size(), 2u);
  EXPECT_EQ(talk.at("turns")[0].at("user"), "Hello");
  EXPECT_EQ(talk.at("turns")[1].at("answer_ids").size(), talk.at("turns")[1].at("answer_tokens"));
  EXPECT_TRUE(talk.at("turns")[0].contains("answer"));
  const CommandResult why =
      emberkv({"explain", "--conversation", "last", "--json", "--store", store_});
  const Json explain = Json::parse(why.output);
  EXPECT_EQ(explain.at("end"), "whole") << why.output;
  EXPECT_EQ(explain.at("computed_tokens"), 1);
  EXPECT_EQ(emberkv({"conversations", "show", "last", "--store", store_}).exit_code, 0);
  expect_refused(emberkv({"conversations", "show", "0000000000000000", "--store", store_}),
                 {"0000000000000000"});
}

TEST_F(InspectTest, ExplainTellsOfAPromptThatDoesNotFitTheContext) {
  const std::string longer = write("longer.txt", some_text(6, 900));
  const std::vector<std::string> words = {"explain", "--prompt-file", longer, "--store", store_};
  EXPECT_NE(emberkv(words).output.find("too long; the context holds 4,096"), std::string::npos)
      << emberkv(words).output;
  EXPECT_EQ(emberkv({"explain", "--prompt", prompt_, "--store", store_}).output.find("too long"),
            std::string::npos);
}

TEST_F(InspectTest, StoresAreComparedByTokens) {
  const std::string other = folder_ / "other";
  EXPECT_EQ(emberkv({"diff", store_, "--store", store_}).exit_code, 0);
  generate(other, prompt_);
  const CommandResult same = emberkv({"diff", other, "--store", store_});
  EXPECT_EQ(same.exit_code, 0) << "another secret, the same tokens: " << same.output;
  generate(other, prompt_.substr(0, prompt_.size() / 2) + some_text(5, 9));
  const CommandResult result = emberkv({"diff", other, "--json", "--store", store_});
  EXPECT_EQ(result.exit_code, 1);
  std::istringstream lines(result.output);
  uint64_t found = 0;
  for (std::string line; std::getline(lines, line); ++found) {
    const Json row = Json::parse(line);
    EXPECT_EQ(row.at("only_in"), "second");
    EXPECT_GT(row.at("position"), 0) << "they have their first blocks in common";
    EXPECT_TRUE(row.contains("text"));
  }
  EXPECT_EQ(found, 1u);
  EXPECT_EQ(emberkv({"diff", other, "--store", store_}).exit_code, 1);
  expect_refused(emberkv({"diff", folder_ / "absent", "--store", store_}), {"absent"});
}

TEST_F(InspectTest, InspectionOnlyReads) {
  const auto before = snapshot(store_);
  inspect("stat");
  inspect("verify");
  inspect("tree");
  inspect("du");
  emberkv({"ls", "--store", store_});
  emberkv({"explain", "--prompt", prompt_, "--store", store_});
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
