// plan and convert, from outside.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/command_line.h"

namespace ember {
namespace {

using Json = nlohmann::json;
using PlanTest = CommandLineTest;
using ConvertTest = CommandLineTest;

const std::string kConfigs = EMBER_SOURCE_DIR "/configs/models/";

TEST_F(PlanTest, SaysWhatAModelNeeds) {
  const CommandResult result =
      emberkv({"plan", "--config", kConfigs + "config_671B.json", "--memory", "1TiB", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const Json plan = Json::parse(result.output);
  EXPECT_EQ(plan["parameters"], 671'026'419'200u);
  EXPECT_EQ(plan["token_bytes"]["bf16"], 70'272);
  EXPECT_EQ(plan["token_bytes"]["fp8"], 40'016);
  EXPECT_EQ(plan["memory_bytes"], uint64_t{1} << 40);
  for (const Json& row : plan["fits"]) {
    // In bf16 the weights alone are larger.
    if (row["weights"] == "bf16") {
      EXPECT_EQ(row["sequences"], 0);
    } else if (row["weights"] == "fp8") {
      EXPECT_GT(row["sequences"], 0);
    }
  }
}

TEST_F(PlanTest, LinesUpItsColumns) {
  const CommandResult result =
      emberkv({"plan", "--config", kConfigs + "config_16B.json", "--memory", "24GiB"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_NE(result.output.find("15,706,484,224"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("31,104"), std::string::npos);
  const std::string table = result.output.substr(result.output.find("        tokens"));
  std::istringstream lines(table);
  std::string header;
  std::getline(lines, header);
  for (std::string line; std::getline(lines, line) && line[0] == ' ';) {
    EXPECT_EQ(line.size(), header.size()) << table;
  }
}

TEST_F(PlanTest, TakesAFolderAndRefusesByName) {
  EXPECT_EQ(emberkv({"plan", "--config", EMBER_SOURCE_DIR "/models/demo"}).exit_code, 0);
  const std::string path = folder_ / "config.json";
  std::string text = file_text(kConfigs + "config_671B.json");
  text.replace(text.find("\"dtype\": \"fp8\""), 14, "\"index_topk\": 1");
  std::ofstream(path) << text;
  const CommandResult result = emberkv({"plan", "--config", path});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.errors.find("index_topk"), std::string::npos) << result.errors;
}

TEST_F(ConvertTest, GoesThereAndBackAndTouchesNothing) {
  const std::string golden = EMBER_SOURCE_DIR "/tests/data/goldens_v3_fp8";
  const CommandResult there =
      emberkv({"convert", "--from", golden, "--to", folder_ / "bf16", "--dtype", "bf16", "--json"});
  ASSERT_EQ(there.exit_code, 0) << there.errors;
  EXPECT_EQ(Json::parse(there.output)["cast"], 176);
  const CommandResult again =
      emberkv({"convert", "--from", golden, "--to", folder_ / "bf16", "--dtype", "bf16"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.errors.find("exists"), std::string::npos);
  const CommandResult back =
      emberkv({"convert", "--from", folder_ / "bf16", "--to", folder_ / "fp8", "--dtype", "fp8"});
  EXPECT_EQ(back.exit_code, 0) << back.errors;
  EXPECT_NE(file_text(folder_ / "fp8/config.json").find("weight_block_size"), std::string::npos);
}

}  // namespace
}  // namespace ember
