// A snapshot of an open store hits when it is opened elsewhere, whatever becomes of the store.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/store/cache/cache_harness.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

namespace fs = std::filesystem;
constexpr size_t kSpan = 64;

class SnapshotTest : public ::testing::Test {
 protected:
  HarnessOptions at(const std::string& name, uint64_t sim_seed = 1) const {
    HarnessOptions options;
    options.sim_seed = sim_seed;
    options.path = folder_ / name;
    return options;
  }

  const TempFolder folder_;
  MemoryStore unused_;
};

TEST_F(SnapshotTest, OpensElsewhereAndHits) {
  for (const uint64_t seed : {0u, 1u}) {
    const std::string name = "copy" + std::to_string(seed);
    CacheHarness harness(at("store" + std::to_string(seed), seed), unused_);
    const auto tokens = CacheHarness::tokens(1, kSpan * 5 + 31);
    const auto later = CacheHarness::tokens(2, kSpan * 4);
    harness.feed(tokens);
    harness.sync();
    const uint64_t before = harness.cache().stats().disk_bytes;
    const Status taken = harness.snapshot(folder_ / name);
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    // What it takes is not the store's: a few flushed rows at most are new there.
    EXPECT_LT(harness.cache().stats().disk_bytes, before + (1u << 20));
    harness.feed(later);
    harness.sync();
    EXPECT_FALSE(fs::exists(folder_ / (name + ".unfinished")));
    struct stat info {};
    ASSERT_EQ(::stat((folder_ / name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0700u);

    CacheHarness copy(at(name, seed), unused_);  // while the store is still open
    EXPECT_EQ(copy.cache().health().state, StoreState::kOk) << copy.cache().health().reason;
    EXPECT_EQ(copy.feed(tokens).restored, tokens.size() - 1);
    EXPECT_EQ(copy.feed(later).restored, 0u);
    copy.expect_sound();
    harness.close();
    fs::remove_all(folder_ / ("store" + std::to_string(seed)));
    copy.reopen();
    EXPECT_EQ(copy.feed(later).restored, later.size() - 1);
  }
}

TEST_F(SnapshotTest, TargetsThatWillNotDoAreRefusedByName) {
  CacheHarness harness(at("store"), unused_);
  fs::create_directory(folder_ / "there");
  fs::create_directory(folder_ / "half.unfinished");
  for (const std::string name : {"there", "half", "store/inside", "absent/deeper"}) {
    const Status taken = harness.snapshot(folder_ / name);
    ASSERT_FALSE(taken.ok()) << name;
    EXPECT_NE(taken.error().message.find(name), std::string::npos) << taken.error().message;
    EXPECT_FALSE(fs::exists(folder_ / (name + "/IDENTITY")));
  }
  EXPECT_TRUE(harness.snapshot(folder_ / "good").ok());
}

TEST_F(SnapshotTest, CacheWithoutAStoreSaysSo) {
  CacheHarness harness(HarnessOptions{}, unused_);
  const Status taken = harness.snapshot(folder_ / "copy");
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kUnsupported);
}

// Turns of a conversation are user data: they go along.
TEST_F(SnapshotTest, ConversationsGoAlong) {
  CacheHarness harness(at("store"), unused_);
  Conversation head;
  head.id = "0123456789abcdef";
  head.system = "be brief";
  ASSERT_TRUE(harness.cache().conversations()->put_head(head).ok());
  ASSERT_TRUE(harness.snapshot(folder_ / "copy").ok());
  CacheHarness copy(at("copy"), unused_);
  const auto loaded = copy.cache().conversations()->load(head.id);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->system, "be brief");
}

}  // namespace
}  // namespace ember::testing
