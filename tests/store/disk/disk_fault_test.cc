// DiskTier on a file system that begins to fail: writes say so, reads go on, and it gets up again.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "store/disk/disk_tier_impl.h"
#include "tests/store/disk/disk_store_testing.h"

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

class DiskFaultTest : public testing::TestWithParam<Weather> {};

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
    MadeBlock again = make_block(4, 1, 1000);
    status = tier.put(again.record, again.payloads);
    if (status.ok()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ASSERT_TRUE(status.ok()) << status.error().message;
  bool kept = read_error(tier, waiting.record, waiting).empty();
  // The first flush after a loss says so; nothing is lost without a word.
  Status after = tier.flush();
  EXPECT_TRUE(kept || !after.ok());
  EXPECT_TRUE(tier.flush().ok());
  EXPECT_EQ(tier.stats().health, "ok");
  EXPECT_EQ(read_error(tier, safe.record, safe), "");
}

INSTANTIATE_TEST_SUITE_P(Weathers, DiskFaultTest,
                         testing::Values(Weather::kNoSpace, Weather::kBroken));

}  // namespace
}  // namespace ember
