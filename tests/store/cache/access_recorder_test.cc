// The access log of a running cache: what it says, its bound, its modes, and that off means none.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "store/access_log.h"
#include "tests/store/cache/cache_harness.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

namespace fs = std::filesystem;
constexpr size_t kSpan = 64;

class AccessRecorderTest : public ::testing::Test {
 protected:
  AccessRecorderTest() {
    options_.path = folder_ / "store";
    options_.access_log_bytes = 64u << 10;
  }

  const TempFolder folder_;
  HarnessOptions options_;
  MemoryStore unused_;
};

TEST_F(AccessRecorderTest, RequestsAreThereWithTheirBlocksAndTiers) {
  const auto tokens = CacheHarness::tokens(1, kSpan * 3 + 9);
  {
    CacheHarness harness(options_, unused_);
    harness.feed(tokens);
    harness.sync();
    harness.reopen();  // what waited is written first
    harness.feed(tokens);
  }
  const auto log = read_access_log(options_.path);
  ASSERT_TRUE(log.ok()) << log.error().message;
  ASSERT_EQ(log->size(), 2u);
  for (const AccessEntry& entry : *log) {
    EXPECT_EQ(entry.blocks.size(), 3u);
    EXPECT_EQ(entry.tokens, tokens.size());
    EXPECT_EQ(entry.scope, "shared");
  }
  EXPECT_EQ((*log)[0].blocks, (*log)[1].blocks);
  EXPECT_EQ((*log)[0].restored_tokens[static_cast<size_t>(Tier::kDisk)], 0u);
  EXPECT_EQ((*log)[1].restored_tokens[static_cast<size_t>(Tier::kDisk)], tokens.size() - 1);
}

TEST_F(AccessRecorderTest, RingStaysWithinItsBoundAndPrivate) {
  options_.access_log_bytes = 2048;
  CacheHarness harness(options_, unused_);
  for (uint64_t i = 0; i < 40; ++i) {
    harness.feed(CacheHarness::tokens(10 + i, kSpan * 2 + 1), false);
    harness.drain();
    harness.cache().tick();
    uint64_t bytes = 0;
    for (const char* name : {kAccessLogNow, kAccessLogBefore}) {
      const std::string path = access_log_folder(options_.path) + "/" + name;
      struct stat info {};
      if (::stat(path.c_str(), &info) != 0) continue;
      EXPECT_EQ(info.st_mode & 0777u, 0600u);
      bytes += static_cast<uint64_t>(info.st_size);
    }
    EXPECT_LE(bytes, options_.access_log_bytes);
  }
  harness.sync();
  harness.close();
  const auto log = read_access_log(options_.path);
  ASSERT_TRUE(log.ok());
  EXPECT_GT(log->size(), 8u);
  EXPECT_LT(log->size(), 40u);
}

TEST_F(AccessRecorderTest, ALaterProcessGoesOnBehindTheLastWholeFrame) {
  const std::string now = access_log_folder(options_.path) + "/" + kAccessLogNow;
  for (uint64_t i = 0; i < 5; ++i) {
    CacheHarness harness(options_, unused_);
    harness.feed(CacheHarness::tokens(1, kSpan * 3 + i));
    harness.sync();
    harness.close();
    const auto log = read_access_log(options_.path);
    ASSERT_TRUE(log.ok()) << log.error().message;
    ASSERT_EQ(log->size(), i + 1);
    EXPECT_EQ(log->back().blocks, log->front().blocks);
    EXPECT_EQ(log->back().prompt_tokens, log->back().tokens);
    // A kill in the midst of the next one.
    std::ofstream(now, std::ios::app | std::ios::binary) << std::string(50, 'x');
  }
}

TEST_F(AccessRecorderTest, OffMeansNone) {
  {
    CacheHarness harness(options_, unused_);
    harness.feed(CacheHarness::tokens(1, kSpan));
  }
  EXPECT_TRUE(fs::exists(access_log_folder(options_.path)));
  options_.access_log_bytes = 0;
  CacheHarness harness(options_, unused_);
  harness.feed(CacheHarness::tokens(1, kSpan));
  EXPECT_FALSE(fs::exists(access_log_folder(options_.path)));
}

}  // namespace
}  // namespace ember::testing
