// upgrade: a current store is left alone, another version is refused by name, steps make a way.
#include "tools/commands/change/upgrade.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/bytes.h"
#include "prefix_index/block_hash.h"
#include "store/store_directory.h"
#include "tests/support/temp_folder.h"
#include "tools/commands/exit_code.h"

namespace ember {
namespace {

using Json = nlohmann::json;

class UpgradeTest : public testing::Test {
 protected:
  UpgradeTest() {
    auto made = StoreDirectory::open(store_);
    EXPECT_TRUE(made.ok()) << made.error().message;
  }

  Json upgrade(int exit_code, bool dry_run = false) {
    std::ostringstream out;
    const Result<int> code = run_upgrade({store_, dry_run, true}, out);
    EXPECT_TRUE(code.ok());
    EXPECT_EQ(*code, exit_code) << out.str();
    return Json::parse(out.str());
  }
  // An intact identity of another version.
  void set_version(uint32_t version) {
    std::string bytes = read_file(store_ + "/IDENTITY");
    bytes.resize(bytes.size() - 8);
    std::memcpy(bytes.data() + 4, &version, sizeof version);
    append_value(bytes, checksum64(as_bytes(bytes)));
    write_file(store_ + "/IDENTITY", bytes);
  }

  TempFolder folder_;
  const std::string store_ = folder_ / "store";
};

TEST_F(UpgradeTest, CurrentStoreIsLeftAlone) {
  const std::string before = read_file(store_ + "/IDENTITY");
  for (bool dry_run : {false, true}) {
    const Json json = upgrade(kExitOk, dry_run);
    EXPECT_EQ(json.at("state"), "current");
    EXPECT_EQ(json.at("version"), kStoreVersion);
    EXPECT_EQ(json.at("current_version"), kStoreVersion);
    EXPECT_TRUE(json.at("migrations").empty());
  }
  EXPECT_EQ(read_file(store_ + "/IDENTITY"), before);
  std::ostringstream text;
  ASSERT_TRUE(run_upgrade({store_, false, false}, text).ok());
  EXPECT_NE(text.str().find("nothing to do"), std::string::npos) << text.str();
}

TEST_F(UpgradeTest, OtherVersionsAreRefusedByNameAndLeftAsTheyWere) {
  for (uint32_t version : {0u, 977u}) {
    set_version(version);
    const std::string before = read_file(store_ + "/IDENTITY");
    const Json json = upgrade(kExitFailed);
    EXPECT_EQ(json.at("state"), "unusable");
    const std::string reason = json.at("reason");
    EXPECT_NE(reason.find("version " + std::to_string(version)), std::string::npos) << reason;
    EXPECT_NE(reason.find("reads " + std::to_string(kStoreVersion)), std::string::npos) << reason;
    EXPECT_EQ(read_file(store_ + "/IDENTITY"), before);
  }
}

TEST_F(UpgradeTest, DamageIsNoOtherVersion) {
  std::string bytes = read_file(store_ + "/IDENTITY");
  bytes[4] = static_cast<char>(bytes[4] ^ 2);
  write_file(store_ + "/IDENTITY", bytes);
  const std::string reason = upgrade(kExitFailed).at("reason");
  EXPECT_NE(reason.find("damaged"), std::string::npos) << reason;
  EXPECT_EQ(reason.find("version"), std::string::npos) << reason;
}

TEST_F(UpgradeTest, NoStoreIsNamed) {
  std::ostringstream out;
  const Result<int> code = run_upgrade({folder_ / "absent", false, true}, out);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, kExitFailed);
  EXPECT_NE(out.str().find("absent"), std::string::npos) << out.str();
}

TEST(UpgradePlanTest, StepsMakeAWayAndTheLongestAreTaken) {
  const std::vector<Migration> known = {
      {1, 2, "a", nullptr}, {2, 3, "b", nullptr}, {2, 4, "c", nullptr}, {5, 6, "d", nullptr}};
  const auto way = [&](uint32_t from, uint32_t to) {
    const Result<std::vector<Migration>> steps = plan_upgrade(from, to, known);
    std::string names = steps.ok() ? "" : "none";
    if (steps.ok()) {
      for (const Migration& step : *steps) names += step.what;
    }
    return names;
  };
  EXPECT_EQ(way(4, 4), "");
  EXPECT_EQ(way(1, 2), "a");
  EXPECT_EQ(way(1, 3), "ab");
  EXPECT_EQ(way(1, 4), "ac");
  EXPECT_EQ(way(1, 5), "none");
  EXPECT_EQ(way(6, 5), "none");
  EXPECT_EQ(plan_upgrade(6, 5, known).error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace ember
