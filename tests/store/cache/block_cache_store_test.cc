// The cache over the real store: reopening, damage of its files, two holders, small limits.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/store/cache/cache_harness.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

namespace fs = std::filesystem;
constexpr size_t kSpan = 64;

class StoreTest : public ::testing::Test {
 protected:
  HarnessOptions on_disk(uint64_t sim_seed = 1) const {
    HarnessOptions options;
    options.sim_seed = sim_seed;
    options.path = path_;
    return options;
  }

  static BlockCacheOptions cache_options(const std::string& path) {
    BlockCacheOptions options;
    options.store_path = path;
    Stream stream;
    stream.row_values = 8;
    options.layout = KvLayout(3, kSpan, stream, 1);
    options.ram_bytes = 64u << 20;
    options.disk_bytes = 64u << 20;
    options.request_tokens = 512;
    return options;
  }

  const TempFolder folder_;
  const std::string path_ = folder_ / "store";
  MemoryStore unused_;
};

TEST_F(StoreTest, CommitOffloadDropReopenRestore) {
  for (uint64_t sim_seed : {0u, 1u, 2u}) {
    fs::remove_all(path_);
    CacheHarness harness(on_disk(sim_seed), unused_);
    const auto tokens = CacheHarness::tokens(1, kSpan * 5 + 31);
    EXPECT_EQ(harness.feed(tokens).restored, 0u);
    harness.sync();
    harness.cache().drop_tier(Tier::kDevice);
    harness.cache().drop_tier(Tier::kHost);
    EXPECT_EQ(harness.feed(tokens).restored, tokens.size() - 1);
    harness.reopen();
    const auto outcome = harness.feed(tokens);
    EXPECT_EQ(outcome.restored, tokens.size() - 1);
    EXPECT_EQ(outcome.report.restored_tokens[static_cast<size_t>(Tier::kDisk)],
              tokens.size() - 1);
    harness.expect_sound();
    const BlockCacheStats stats = harness.cache().stats();
    EXPECT_EQ(stats.blocks[static_cast<size_t>(Tier::kDisk)], 5u);
    EXPECT_EQ(stats.tail_records, 1u);
    EXPECT_GT(stats.stored_bytes, 0u);
    EXPECT_LE(stats.disk_bytes, stats.disk_limit_bytes);
  }
}

TEST_F(StoreTest, ClosingWritesWhatIsNotDurableYet) {
  CacheHarness harness(on_disk(0), unused_);
  const auto tokens = CacheHarness::tokens(2, kSpan * 3 + 1);
  harness.feed(tokens);
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens).restored, tokens.size() - 1);
}

TEST_F(StoreTest, SecondHolderIsRefusedByPid) {
  CacheHarness harness(on_disk(), unused_);
  const auto device = make_sim_device(1);
  const auto second = BlockCache::open(cache_options(path_), *device);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  EXPECT_NE(second.error().message.find(std::to_string(getpid())), std::string::npos)
      << second.error().message;
}

TEST_F(StoreTest, DamagedIdentityMeansNoStoreAndAReason) {
  { CacheHarness harness(on_disk(), unused_); }
  {
    std::fstream file(path_ + "/IDENTITY", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20);
    file.put('\x55');
  }
  const auto device = make_sim_device(1);
  auto cache = BlockCache::open(cache_options(path_), *device);
  ASSERT_TRUE(cache.ok()) << cache.error().message;
  EXPECT_EQ((*cache)->health().state, StoreState::kUnusable);
  EXPECT_FALSE((*cache)->health().reason.empty());
  EXPECT_EQ((*cache)->conversations(), nullptr);
  const auto tokens = CacheHarness::tokens(1, 100);
  EXPECT_TRUE((*cache)->open_chain(tokens, 0, 100).ok());
}

// After any one byte of any file was changed, the cache opens, and no wrong row is ever restored.
TEST_F(StoreTest, AnyFlippedByteIsAMissAtWorst) {
  const auto tokens = CacheHarness::tokens(3, kSpan * 3 + 9);
  {
    CacheHarness harness(on_disk(), unused_);
    harness.feed(tokens);
    harness.sync();
  }
  const std::string pristine = folder_ / "pristine";
  fs::copy(path_, pristine, fs::copy_options::recursive);
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(pristine)) {
    if (entry.is_regular_file() && entry.file_size() > 0) {
      files.push_back(fs::relative(entry.path(), pristine));
    }
  }
  size_t restored = 0;
  size_t damaged_opens = 0;
  for (const fs::path& name : files) {
    const auto size = fs::file_size(pristine / name);
    for (uint64_t where : {uint64_t{0}, size / 2}) {
      SCOPED_TRACE(name.string() + " at " + std::to_string(where));
      fs::remove_all(path_);
      fs::copy(pristine, path_, fs::copy_options::recursive);
      {
        std::fstream file(fs::path(path_) / name, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(where));
        const int byte = file.get();
        file.seekp(static_cast<std::streamoff>(where));
        file.put(static_cast<char>(byte ^ 0x21));
      }
      CacheHarness harness(on_disk(), unused_);
      restored += harness.feed(tokens).restored;  // checks every row
      if (harness.cache().health().state == StoreState::kUnusable) {
        ++damaged_opens;
        EXPECT_FALSE(harness.cache().health().reason.empty());
      }
      harness.sync();
    }
  }
  EXPECT_GT(restored, 0u);
  EXPECT_GT(damaged_opens, 0u);
}

TEST_F(StoreTest, TooSmallNumbersAreRefusedByName) {
  const auto device = make_sim_device(1);
  BlockCacheOptions options = cache_options(path_);
  options.disk_bytes = 1u << 20;
  auto cache = BlockCache::open(options, *device);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(cache.error().message.find("disk_bytes"), std::string::npos);
  options = cache_options(path_);
  options.ram_bytes = 1u << 20;
  cache = BlockCache::open(options, *device);
  ASSERT_FALSE(cache.ok());
  EXPECT_NE(cache.error().message.find("ram_bytes"), std::string::npos);
  EXPECT_FALSE(fs::exists(path_));
}

}  // namespace
}  // namespace ember::testing
