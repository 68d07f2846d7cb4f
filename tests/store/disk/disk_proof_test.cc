// The disk tier's part of the proof: the probe, records as they are found, going over them in
// order, and no second life for damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "store/disk/disk_tier_impl.h"
#include "tests/store/disk/disk_store_testing.h"

namespace ember {
namespace {

// Changes what is read from a file of this name, or refuses to make it.
struct Weather {
  std::atomic<bool> changes_reads{false};
  std::atomic<bool> refuses_writes{false};
};

class ChangingReader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  using FSRandomAccessFileOwnerWrapper::FSRandomAccessFileOwnerWrapper;
  rocksdb::IOStatus Read(uint64_t offset, size_t size, const rocksdb::IOOptions& options,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* debug) const override {
    rocksdb::IOStatus status =
        FSRandomAccessFileOwnerWrapper::Read(offset, size, options, result, scratch, debug);
    if (!status.ok() || result->size() < 100) return status;
    std::string changed = result->ToString();
    changed[99] = static_cast<char>(changed[99] ^ 1);
    std::copy(changed.begin(), changed.end(), scratch);
    *result = rocksdb::Slice(scratch, changed.size());
    return status;
  }
};

class ProbedFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit ProbedFileSystem(std::shared_ptr<Weather> weather)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), weather_(std::move(weather)) {}
  const char* Name() const override { return "ProbedFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    if (path.ends_with("PROBE") && weather_->refuses_writes) {
      return rocksdb::IOStatus::IOError("the drive does not write");
    }
    return FileSystemWrapper::NewWritableFile(path, options, file, debug);
  }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status =
        FileSystemWrapper::NewRandomAccessFile(path, options, file, debug);
    if (status.ok() && path.ends_with("PROBE") && weather_->changes_reads) {
      *file = std::make_unique<ChangingReader>(std::move(*file));
    }
    return status;
  }

 private:
  std::shared_ptr<Weather> weather_;
};

TEST(DiskProbeTest, LeavesNothingHoweverOftenAStoreIsOpened) {
  const ScratchFolder folder;
  const DiskTierOptions options = small_tier(folder.sub("blocks"), 16u << 20);
  std::vector<size_t> tables;
  for (int opening = 0; opening < 6; ++opening) {
    auto tier = open_tier(options);
    const Status probed = tier->probe();
    ASSERT_TRUE(probed.ok()) << probed.error().message;
    EXPECT_EQ(tier->stats().blocks, 0u);
    EXPECT_EQ(tier->list()->records.size(), 0u);
    tier.reset();
    size_t count = 0;
    for (const std::string& file : files_below(options.directory)) {
      EXPECT_EQ(file.find("PROBE"), std::string::npos);
      if (file.ends_with(".sst") || file.ends_with(".blob")) ++count;
    }
    tables.push_back(count);
  }
  EXPECT_EQ(tables.back(), 0u) << "a put and its deletion leave no table";
}

TEST(DiskProbeTest, DriveThatChangesBytesOrDoesNotWriteIsFound) {
  const ScratchFolder folder;
  const auto weather = std::make_shared<Weather>();
  auto opened = DiskTierImpl::open(small_tier(folder.sub("blocks"), 16u << 20),
                                   std::make_shared<ProbedFileSystem>(weather));
  ASSERT_TRUE(opened.ok());
  weather->changes_reads = true;
  const Status changed = (*opened)->probe();
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().code, ErrorCode::kCorruption);
  EXPECT_NE(changed.error().message.find("came back changed"), std::string::npos);
  weather->refuses_writes = true;
  EXPECT_EQ((*opened)->probe().error().code, ErrorCode::kIo);
  weather->refuses_writes = weather->changes_reads = false;
  EXPECT_TRUE((*opened)->probe().ok());
}

class DiskProofTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBlocks = 40;

  void SetUp() override {
    auto tier = open_tier(options_);
    for (uint64_t id = 0; id < kBlocks; ++id) {
      blocks_.push_back(make_block(id, 2, 3000));
      ASSERT_TRUE(tier->put(blocks_[id].record, blocks_[id].payloads).ok());
    }
    ASSERT_TRUE(tier->flush().ok());
  }

  // Finds `bytes` in the folder's files that end so, and changes the byte in their middle.
  void damage(const std::string& bytes, const std::string& extension) {
    for (const std::string& path : files_below(options_.directory)) {
      if (!path.ends_with(extension)) continue;
      std::ifstream in(path, std::ios::binary);
      std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      const size_t at = all.find(bytes);
      if (at == std::string::npos) continue;
      const size_t middle = at + bytes.size() / 2;
      all[middle] = static_cast<char>(all[middle] ^ 0x10);
      std::ofstream(path, std::ios::binary) << all;
      return;
    }
    FAIL() << "the bytes are in no " << extension << " file";
  }

  ScratchFolder folder_;
  DiskTierOptions options_ = small_tier(folder_.sub("blocks"), 16u << 20);
  std::vector<MadeBlock> blocks_;
};

TEST_F(DiskProofTest, DamagedPayloadIsReadAsItLies) {
  std::string payload = blocks_[7].payloads[1];
  damage(payload, ".blob");
  payload[payload.size() / 2] = static_cast<char>(payload[payload.size() / 2] ^ 0x10);
  auto tier = open_tier(options_);
  EXPECT_NE(read_error(*tier, blocks_[7].record, blocks_[7]), "");
  const auto found = tier->read_as_found(blocks_[7].record.hash);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->record, encode_record(blocks_[7].record));
  ASSERT_EQ((*found)->groups.size(), 2u);
  EXPECT_EQ((*found)->groups[0], blocks_[7].payloads[0]);
  EXPECT_EQ((*found)->groups[1], payload) << "the damaged bytes themselves";
  EXPECT_FALSE(tier->read_as_found(made_hash(1u << 20))->has_value());
}

TEST_F(DiskProofTest, RecordsComeInTheOrderOfTheirHashesAFewAtATime) {
  auto tier = open_tier(options_);
  std::vector<BlockHash> expected, found;
  for (const MadeBlock& block : blocks_) expected.push_back(block.record.hash);
  std::sort(expected.begin(), expected.end());
  std::optional<BlockHash> after;
  for (bool ended = false; !ended;) {
    const auto scan = tier->records_after(after, 7);
    ASSERT_TRUE(scan.ok());
    ASSERT_LE(scan->records.size(), 7u);
    for (const auto& [hash, record] : scan->records) {
      ASSERT_TRUE(record.ok());
      found.push_back(hash);
      after = hash;
    }
    ended = scan->ended;
  }
  EXPECT_EQ(found, expected);
}

TEST_F(DiskProofTest, DamagedTableLeavesAGapWithEveryHiddenRecordInIt) {
  damage(encode_record(blocks_[5].record), ".sst");
  auto tier = open_tier(options_);
  std::vector<BlockHash> found;
  std::vector<std::pair<BlockHash, BlockHash>> gaps;
  std::optional<BlockHash> after;
  for (bool ended = false; !ended;) {
    const auto scan = tier->records_after(after, 7);
    ASSERT_TRUE(scan.ok());
    if (scan->gap) gaps.push_back(*scan->gap);
    for (const auto& [hash, record] : scan->records) {
      found.push_back(hash);
      after = hash;
    }
    ended = scan->ended;
    ASSERT_TRUE(ended || !scan->records.empty()) << "no way forward";
  }
  ASSERT_FALSE(gaps.empty());
  EXPECT_LT(found.size(), kBlocks);
  EXPECT_GT(found.size(), 0u);
  for (const MadeBlock& block : blocks_) {
    const BlockHash& hash = block.record.hash;
    const bool listed = std::find(found.begin(), found.end(), hash) != found.end();
    const bool hidden = std::any_of(gaps.begin(), gaps.end(), [&](const auto& gap) {
      return gap.first <= hash && hash <= gap.second;
    });
    EXPECT_TRUE(listed || hidden) << hash.hex();
  }
}

TEST_F(DiskProofTest, DamageIsNotWrittenASecondTime) {
  damage(blocks_[3].payloads[0], ".blob");
  std::vector<QuarantineEntry> aside;
  options_.limit_bytes = 4u << 20;
  options_.set_aside = [&](const QuarantineEntry& entry) { aside.push_back(entry); };
  auto tier = open_tier(options_);
  // Most of the epoch goes; what is left has to be written again.
  for (uint64_t id = 10; id < kBlocks; ++id) ASSERT_TRUE(tier->erase(made_hash(id)).ok());
  for (uint64_t id = 100; tier->stats().retired_epochs == 0; ++id) {
    ASSERT_LT(id, 2000u) << "no epoch is retired";
    MadeBlock more = make_block(id, 2, 20000);
    if (!tier->has_room(more.record.stored_bytes())) {
      static_cast<void>(tier->make_room(more.record.stored_bytes()));
      continue;
    }
    static_cast<void>(tier->put(more.record, more.payloads));
  }
  EXPECT_EQ(tier->take_lost(), std::vector<BlockHash>{blocks_[3].record.hash});
  EXPECT_TRUE(tier->take_lost().empty()) << "each once";
  ASSERT_EQ(aside.size(), 1u);
  EXPECT_EQ(aside[0].hash, blocks_[3].record.hash);
  EXPECT_EQ(aside[0].position, 3u);
  EXPECT_EQ(aside[0].found.groups.at(1), blocks_[3].payloads[1]);
  EXPECT_NE(aside[0].found.groups.at(0), blocks_[3].payloads[0]);
  EXPECT_NE(read_error(*tier, blocks_[3].record, blocks_[3]), "");
  for (uint64_t id : {0u, 1u, 2u, 4u, 9u}) {
    EXPECT_EQ(read_error(*tier, blocks_[id].record, blocks_[id]), "") << id;
  }
}

}  // namespace
}  // namespace ember
