// forget and encrypted stores, as a user meets them on the command line.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/command_line.h"

namespace ember {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ForgetCommandTest : public CommandLineTest {
 protected:
  Json run(std::vector<std::string> arguments, int exit_code = 0) {
    arguments.insert(arguments.end(), {"--json", "--store", store_});
    const CommandResult result = emberkv(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.errors << result.output;
    return result.output.empty() ? Json() : Json::parse(result.output);
  }
  const std::string store_ = folder_ / "store";
  const std::string key_ = folder_ / "master.key";
  const std::string prompt_ = some_text(1, 30);
};

TEST_F(ForgetCommandTest, EncryptedStoreNeedsItsKeyAndForgets) {
  std::vector<std::string> command = generate_command(store_, prompt_, 2);
  command.insert(command.end(), {"--key-file", key_});
  const CommandResult first = emberkv(command);
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  ASSERT_TRUE(fs::exists(key_));
  const CommandResult second = emberkv(command);
  EXPECT_GT(Json::parse(second.output).at("restored_tokens").at("disk"), 0);

  const CommandResult without = emberkv({"stat", "--store", store_});
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_NE(without.errors.find("--encrypt"), std::string::npos) << without.errors;
  EXPECT_EQ(run({"verify", "--key-file", key_}).at("damaged"), 0);
  const Json stat = run({"stat", "--key-file", key_});
  EXPECT_EQ(stat.at("encrypted"), true);
  EXPECT_GT(stat.at("blocks"), 0);

  // Another key: one warning, and the request runs.
  fs::rename(key_, key_ + ".away");
  const CommandResult keyless = emberkv(command);
  EXPECT_EQ(keyless.exit_code, 0) << keyless.errors;
  EXPECT_NE(keyless.errors.find("master.key: it is missing"), std::string::npos) << keyless.errors;
  EXPECT_EQ(Json::parse(keyless.output).at("store").at("state"), "unusable");
  fs::rename(key_ + ".away", key_);

  const Json plan = run({"forget", "--scope", "shared", "--dry-run", "--key-file", key_});
  EXPECT_EQ(plan.at("blocks"), stat.at("blocks"));
  EXPECT_EQ(plan.at("keys_destroyed"), 0);
  EXPECT_EQ(run({"stat", "--key-file", key_}).at("blocks"), stat.at("blocks"));
  const Json done = run({"forget", "--scope", "shared", "--now", "--key-file", key_});
  EXPECT_EQ(done.at("blocks"), stat.at("blocks"));
  EXPECT_EQ(done.at("keys_destroyed"), 1);
  EXPECT_EQ(done.at("bytes_gone"), true);
  EXPECT_EQ(run({"stat", "--key-file", key_}).at("blocks"), 0);
  EXPECT_EQ(run({"verify", "--key-file", key_}).at("damaged"), 0);
  const CommandResult again = emberkv(command);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(Json::parse(again.output).at("restored_tokens").at("disk"), 0);
}

TEST_F(ForgetCommandTest, StoreInClearForgetsTooAndIsNotMadeForIt) {
  const CommandResult nothing = emberkv({"forget", "--all", "--store", store_});
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_FALSE(fs::exists(store_));
  ASSERT_EQ(emberkv(generate_command(store_, prompt_, 2)).exit_code, 0);
  const CommandResult encrypted = emberkv({"stat", "--store", store_, "--key-file", key_});
  EXPECT_EQ(encrypted.exit_code, 1);
  EXPECT_NE(encrypted.errors.find("lies in clear"), std::string::npos) << encrypted.errors;
  EXPECT_FALSE(fs::exists(key_));
  EXPECT_EQ(run({"forget", "--scope", "nobody"}).at("blocks"), 0);
  const CommandResult done = emberkv({"forget", "--all", "--store", store_});
  EXPECT_EQ(done.exit_code, 0) << done.errors;
  EXPECT_NE(done.output.find("with --now"), std::string::npos) << done.output;
  EXPECT_EQ(run({"stat"}).at("blocks"), 0);
}

}  // namespace
}  // namespace ember
