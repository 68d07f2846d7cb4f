// DiskTier on a file system that begins to fail: writes say so, reads go on, and it gets up again.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "store/disk/disk_tier_impl.h"
#include "tests/store/disk/disk_store_testing.h"
#include "tests/support/faulty_file_system.h"

namespace ember {
namespace {

enum class Weather { kFine, kNoSpace, kBroken };

class FaultyWriter final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyWriter(std::unique_ptr<rocksdb::FSWritableFile>&& target,
               std::shared_ptr<std::atomic<Weather>> weather)
      : FSWritableFileOwnerWrapper(std::move(target)), weather_(std::move(weather)) {}
  using FSWritableFileOwnerWrapper::Append;
  using FSWritableFileOwnerWrapper::PositionedAppend;
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = forecast();
    return status.ok() ? FSWritableFileOwnerWrapper::Append(data, options, debug) : status;
  }
  rocksdb::IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset,
                                     const rocksdb::IOOptions& options,
                                     rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = forecast();
    if (!status.ok()) return status;
    return FSWritableFileOwnerWrapper::PositionedAppend(data, offset, options, debug);
  }

 private:
  rocksdb::IOStatus forecast() const {
    switch (weather_->load()) {
      case Weather::kNoSpace: return rocksdb::IOStatus::NoSpace("the drive is full");
      case Weather::kBroken: return rocksdb::IOStatus::IOError("the drive is broken");
      case Weather::kFine: break;
    }
    return rocksdb::IOStatus::OK();
  }
  std::shared_ptr<std::atomic<Weather>> weather_;
};

class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultyFileSystem(std::shared_ptr<std::atomic<Weather>> weather)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), weather_(std::move(weather)) {}
  const char* Name() const override { return "FaultyFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewWritableFile(path, options, file, debug);
    if (status.ok()) *file = std::make_unique<FaultyWriter>(std::move(*file), weather_);
    return status;
  }

 private:
  std::shared_ptr<std::atomic<Weather>> weather_;
};

class DiskFaultTest : public ::testing::TestWithParam<Weather> {};

TEST_P(DiskFaultTest, WritesFailReadsGoOnAndItGetsUpAgain) {
  ScratchFolder folder;
  auto weather = std::make_shared<std::atomic<Weather>>(Weather::kFine);
  auto opened = DiskTierImpl::open(small_tier(folder.sub("blocks"), 16u << 20),
                                   std::make_shared<FaultyFileSystem>(weather));
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  DiskTier& tier = **opened;
  MadeBlock safe = make_block(1, 2, 20000), waiting = make_block(2, 2, 20000);
  ASSERT_TRUE(tier.put(safe.record, safe.payloads).ok());
  ASSERT_TRUE(tier.flush().ok());
  ASSERT_TRUE(tier.put(waiting.record, waiting.payloads).ok());

  weather->store(GetParam());
  Status flushed = tier.flush();
  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code,
            GetParam() == Weather::kNoSpace ? ErrorCode::kCapacity : ErrorCode::kIo);
  EXPECT_NE(tier.stats().health, "ok");
  EXPECT_EQ(read_error(tier, safe.record, safe), "");
  MadeBlock refused = make_block(3, 1, 1000);
  EXPECT_FALSE(tier.put(refused.record, refused.payloads).ok());
  EXPECT_EQ(read_error(tier, safe.record, safe), "");

  weather->store(Weather::kFine);
  Status status;
  for (int attempt = 0; attempt < 100; ++attempt) {
    MadeBlock again = make_block(6, 1, 1000);
    status = tier.put(again.record, again.payloads);
    if (status.ok()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ASSERT_TRUE(status.ok()) << status.error().message;
  bool kept = read_error(tier, waiting.record, waiting).empty();
  // Nothing comes to lie under a block that was lost.
  MadeBlock child = make_block(4, 1, 1000);
  ASSERT_EQ(child.record.parent, waiting.record.hash);
  EXPECT_EQ(tier.put(child.record, child.payloads).ok(), kept);
  // The first flush after a loss says so; nothing is lost without a word.
  Status after = tier.flush();
  EXPECT_TRUE(kept || !after.ok());
  EXPECT_TRUE(tier.flush().ok());
  EXPECT_EQ(tier.stats().health, "ok");
  EXPECT_EQ(read_error(tier, safe.record, safe), "");
  EXPECT_TRUE(tier.put(waiting.record, waiting.payloads).ok());
  EXPECT_TRUE(tier.put(child.record, child.payloads).ok());
}

// What the drive does not give for now is no damage: nothing is lost, and the next try works.
TEST(DiskReadFaultTest, ReadErrorWhileAnEpochIsRetiredLosesNothing) {
  ScratchFolder folder;
  const auto broken = std::make_shared<std::atomic<bool>>(false);
  ember::testing::FaultHooks hooks;
  hooks.before = [broken](testing::FileAct act, const std::string& path) {
    const bool strikes = *broken && act == testing::FileAct::kRead && path.ends_with(".blob");
    return strikes ? rocksdb::IOStatus::IOError(path, "unreadable") : rocksdb::IOStatus::OK();
  };
  auto opened = DiskTierImpl::open(small_tier(folder.sub("blocks"), 32u << 20),
                                   testing::make_faulty_file_system(hooks));
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  DiskTier& tier = **opened;
  std::vector<MadeBlock> blocks;
  for (uint64_t id = 0; id < 4; ++id) {
    blocks.push_back(make_block(id, 2, 20000));
    ASSERT_TRUE(tier.put(blocks.back().record, blocks.back().payloads).ok());
  }
  ASSERT_TRUE(tier.erase(blocks[3].record.hash).ok());
  ASSERT_TRUE(tier.flush().ok());
  const std::vector<uint32_t> epochs{blocks[0].record.epoch};

  *broken = true;
  const Status retired = tier.retire_epochs(epochs);
  ASSERT_FALSE(retired.ok());
  EXPECT_EQ(retired.error().code, ErrorCode::kIo) << retired.error().message;
  EXPECT_TRUE(tier.take_lost().empty());
  *broken = false;
  ASSERT_TRUE(tier.retire_epochs(epochs).ok());
  EXPECT_TRUE(tier.take_lost().empty());
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(read_error(tier, blocks[i].record, blocks[i]), "");
}

// RocksDB's compaction that ends with nothing to keep is fragile where its table cannot be written.
TEST(DiskReclaimFaultTest, AnEpochIsDroppedWhicheverActOnATableFails) {
  uint64_t failed_acts = 0;
  for (uint64_t nth = 1; nth <= 40; ++nth) {
    SCOPED_TRACE("act " + std::to_string(nth));
    ScratchFolder folder;
    const auto left = std::make_shared<std::atomic<uint64_t>>(0);
    ember::testing::FaultHooks hooks;
    hooks.before = [left](testing::FileAct act, const std::string& path) {
      const bool counts = path.ends_with(".sst") && act != testing::FileAct::kRead && *left > 0;
      const bool strikes = counts && left->fetch_sub(1) == 1;
      return strikes ? rocksdb::IOStatus::IOError(path, "broken") : rocksdb::IOStatus::OK();
    };
    auto opened = DiskTierImpl::open(small_tier(folder.sub("blocks"), 32u << 20),
                                     testing::make_faulty_file_system(hooks));
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    DiskTier& tier = **opened;
    MadeBlock block = make_block(1, 2, 20000);
    ASSERT_TRUE(tier.put(block.record, block.payloads).ok());
    ASSERT_TRUE(tier.flush().ok());
    ASSERT_TRUE(tier.erase(block.record.hash).ok());
    ASSERT_TRUE(tier.flush().ok());
    *left = nth;
    const std::vector<uint32_t> epochs{block.record.epoch};
    Status retired = tier.retire_epochs(epochs);
    const bool struck = left->exchange(0) == 0;
    failed_acts += retired.ok() ? 0u : 1u;
    for (int attempt = 0; attempt < 100 && !retired.ok(); ++attempt) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      retired = tier.retire_epochs(epochs);
    }
    EXPECT_TRUE(retired.ok()) << retired.error().message;
    if (!struck) break;
  }
  EXPECT_GT(failed_acts, 3u);
}

INSTANTIATE_TEST_SUITE_P(Weathers, DiskFaultTest,
                         ::testing::Values(Weather::kNoSpace, Weather::kBroken));

}  // namespace
}  // namespace ember
