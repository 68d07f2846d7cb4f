// simulate: a trace to the block as a plain simulation has it, and a store's own log.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/command_line.h"
// After it: beyond these `testing` is our own namespace too.
#include "store/replay/public_trace.h"
#include "tests/store/replay/plain_replay.h"

namespace ember {
namespace {

using Json = nlohmann::json;

class SimulateTest : public CommandLineTest {
 protected:
  Json simulate(std::vector<std::string> words) {
    words.insert(words.begin(), "simulate");
    words.insert(words.end(), {"--json", "--store", store_});
    const CommandResult result = emberkv(words);
    EXPECT_EQ(result.exit_code, 0) << result.errors << result.output;
    return result.exit_code == 0 ? Json::parse(result.output) : Json();
  }
  void ask(uint64_t text, int times) {
    std::vector<std::string> words = generate_command(store_, some_text(text, 30), 2);
    words.insert(words.end(), {"--access-log", "1MiB", "--disk-bytes", "128MiB"});
    for (int i = 0; i < times; ++i) EXPECT_EQ(emberkv(words).exit_code, 0);
  }

  const std::string store_ = folder_ / "store";
};

TEST_F(SimulateTest, ATraceHasThePlainSimulationsHitsToTheBlock) {
  const std::string path = std::string(EMBER_SOURCE_DIR) + "/tests/data/traces/chat.jsonl.gz";
  const auto trace = replay::read_trace({path, "", "24h"});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const std::string plot = folder_ / "hits.svg";
  const Json found = simulate({"--trace", path, "--capacities", "3%,10%", "--plot", plot});
  EXPECT_EQ(found.at("looked_up_blocks"), trace->references);
  EXPECT_EQ(found.at("distinct_blocks"), trace->blocks());
  ASSERT_EQ(found.at("rows").size(), 6u);
  for (const Json& row : found.at("rows")) {
    const auto policy = eviction_policy_of(row.at("policy").get<std::string>());
    ASSERT_TRUE(policy.has_value());
    testing::PlainReplay plain(*trace, row.at("blocks").get<size_t>(), *policy);
    const uint64_t hits = plain.run();
    EXPECT_EQ(row.at("hits"), hits) << row;
    EXPECT_EQ(row.at("restored_tokens"), hits * 512) << row;
    EXPECT_EQ(row.at("computed_tokens"), (trace->references - hits) * 512) << row;
    EXPECT_FALSE(row.contains("written_bytes")) << "no block's size is known";
  }
  const std::string picture = file_text(plot);
  EXPECT_EQ(picture.rfind("<svg", 0), 0u);
  EXPECT_EQ(std::count(picture.begin(), picture.end(), '\n') > 10, true);
  const Json sized = simulate({"--trace", path, "--block-bytes", "1MiB", "--policies", "leaf_lru",
                               "--capacities", "2GiB"});
  ASSERT_EQ(sized.at("rows").size(), 1u);
  EXPECT_EQ(sized.at("rows")[0].at("written_bytes"),
            sized.at("rows")[0].at("inserted_blocks").get<uint64_t>() << 20);
}

TEST_F(SimulateTest, AStoresLogTellsWhatItsRequestsWouldHaveHad) {
  ask(1, 2);
  ask(2, 1);
  const Json found = simulate({"--capacities", "64MiB,20%"});
  EXPECT_EQ(found.at("requests"), 3);
  EXPECT_GT(found.at("distinct_blocks"), 6);
  EXPECT_GT(found.at("logged_restored_tokens"), 0);
  EXPECT_EQ(found.at("block_tokens"), 64);
  EXPECT_EQ(found.at("present").at("policy"), "auto");
  // One request was asked twice, and nothing had to go: as the store did, but for its tail.
  const uint64_t most = found.at("most_restored_tokens");
  const uint64_t logged = found.at("logged_restored_tokens");
  EXPECT_LE(most, logged);
  EXPECT_GE(most + 64, logged);
  size_t present = 0;
  for (const Json& row : found.at("rows")) {
    if (row.at("present") == true) {
      ++present;
      EXPECT_EQ(row.at("restored_tokens"), most);
      EXPECT_NEAR(row.at("disk_bytes").get<double>(), 128 << 20, 3 << 20);
    }
    EXPECT_EQ(row.at("restored_tokens").get<uint64_t>() + row.at("computed_tokens").get<uint64_t>(),
              found.at("prompt_tokens"));
  }
  EXPECT_EQ(present, 1u);
  const CommandResult table = emberkv({"simulate", "--store", store_});
  EXPECT_EQ(table.exit_code, 0) << table.errors;
  for (const char* word : {"<- as it is", "few requests", "do not differ", "leaf_lru", "at most"}) {
    const bool told = table.output.find(word) != std::string::npos;
    EXPECT_EQ(told, std::string(word) != "do not differ") << word << ":\n" << table.output;
  }
}

TEST_F(SimulateTest, TheLogOfARunningProcessIsReadBesideIt) {
  ask(1, 1);
  Result<std::unique_ptr<ChatClient>> holder = ChatClient::start(
      {program_path(), "chat", "--json", "--model", model(), "--store", store_, "--max-tokens",
       "4", "--access-log", "1MiB", "--system", some_text(3, 30)});
  ASSERT_TRUE(holder.ok()) << holder.error().message;
  ASSERT_TRUE((*holder)->ask("Who is Ada?").ok());
  ASSERT_TRUE((*holder)->ask("And who?").ok());
  const Json found = simulate({});
  EXPECT_EQ(found.at("requests"), 3);
  EXPECT_GT(found.at("most_restored_tokens"), 0);
  EXPECT_TRUE((*holder)->finish().ok());
}

TEST_F(SimulateTest, WithoutALogItSaysHowOneComesToBe) {
  expect_refused(emberkv({"simulate", "--store", store_}), {store_, "no store yet"});
  generate(store_, some_text(1, 30), 2);
  expect_refused(emberkv({"simulate", "--store", store_}), {"no access log", "--access-log"});
  std::vector<std::string> words = generate_command(store_, "Hello", 2);
  words.insert(words.end(), {"--access-log", "1MiB"});
  EXPECT_EQ(emberkv(words).exit_code, 0);
  expect_refused(emberkv({"simulate", "--store", store_}), {"1 request", "64 tokens"});
  EXPECT_EQ(emberkv({"simulate", "--capacities", "many"}).exit_code, 2);
  EXPECT_EQ(emberkv({"simulate", "--policies", "random"}).exit_code, 2);
  EXPECT_EQ(emberkv({"simulate", "--starts", "file.csv"}).exit_code, 2);
  expect_refused(emberkv({"simulate", "--trace", folder_ / "nowhere"}), {"nowhere"});
}

}  // namespace
}  // namespace ember
