// The quarantine: what it keeps, in how much room, and what its own damage does.
#include "store/quarantine.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/store/disk/disk_store_testing.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

QuarantineEntry entry_of(uint64_t id, size_t bytes = 1000) {
  QuarantineEntry entry;
  entry.hash = made_hash(id);
  entry.position = static_cast<uint32_t>(id);
  entry.reason = "reason " + std::to_string(id);
  entry.found.record = "the record of " + std::to_string(id);
  entry.found.groups.emplace_back(std::string(bytes, static_cast<char>('a' + id % 26)));
  entry.found.groups.emplace_back(std::nullopt);
  entry.found.groups.emplace_back("");
  return entry;
}

class QuarantineTest : public ::testing::Test {
 protected:
  std::unique_ptr<Quarantine> open(uint64_t limit_bytes = 1u << 20, bool read_only = false) {
    return Quarantine::open(path_, limit_bytes, read_only);
  }
  static unsigned mode(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 0777u;
  }

  ScratchFolder folder_;
  std::string path_ = folder_.sub("quarantine");
};

TEST_F(QuarantineTest, RecordComesBackAsItWasFound) {
  {
    auto quarantine = open();
    EXPECT_TRUE(quarantine->list().empty());
    EXPECT_FALSE(fs::exists(path_)) << "the folder is made with the first record";
    ASSERT_TRUE(quarantine->keep(entry_of(7), 12345).ok());
    EXPECT_EQ(quarantine->stats().bytes, bytes_below(path_));
  }
  auto quarantine = open(1u << 20, true);
  const std::vector<QuarantineRow> rows = quarantine->list();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].hash, made_hash(7));
  EXPECT_EQ(rows[0].position, 7u);
  EXPECT_EQ(rows[0].unix_us, 12345);
  EXPECT_EQ(rows[0].reason, "reason 7");
  EXPECT_EQ(rows[0].bytes, bytes_below(path_));
  const Result<QuarantineEntry> whole = read_quarantine_file(path_ + "/" + rows[0].file);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ(whole->found.record, entry_of(7).found.record);
  EXPECT_EQ(whole->found.groups, entry_of(7).found.groups);
  EXPECT_EQ(mode(path_), 0700u);
  EXPECT_EQ(mode(path_ + "/" + rows[0].file), 0600u);
  EXPECT_EQ(quarantine->keep(entry_of(8), 1).error().code, ErrorCode::kUnsupported);
}

TEST_F(QuarantineTest, SameBytesAreKeptOnceAlsoAfterReopening) {
  for (int round = 0; round < 2; ++round) {
    auto quarantine = open();
    ASSERT_TRUE(quarantine->keep(entry_of(1), 1).ok());
    ASSERT_TRUE(quarantine->keep(entry_of(1), 2).ok());
    EXPECT_EQ(quarantine->stats().records, 1u);
  }
  auto quarantine = open();
  QuarantineEntry other = entry_of(1);
  other.found.record += "!";
  ASSERT_TRUE(quarantine->keep(other, 3).ok());
  EXPECT_EQ(quarantine->stats().records, 2u) << "other bytes of the same block";
}

TEST_F(QuarantineTest, OldestGoFirstAndTheShareHolds) {
  constexpr uint64_t kLimit = 20'000;
  auto quarantine = open(kLimit);
  for (uint64_t id = 0; id < 100; ++id) {
    ASSERT_TRUE(quarantine->keep(entry_of(id), static_cast<int64_t>(id)).ok());
    ASSERT_LE(bytes_below(path_), kLimit);
    ASSERT_EQ(quarantine->stats().bytes, bytes_below(path_));
  }
  const std::vector<QuarantineRow> rows = quarantine->list();
  ASSERT_GT(rows.size(), 10u);
  EXPECT_EQ(rows.back().hash, made_hash(99));
  EXPECT_EQ(rows.front().hash, made_hash(100 - rows.size()));
  EXPECT_EQ(quarantine->stats().dropped, 100 - rows.size());
  quarantine = open(kLimit / 4);
  EXPECT_LE(bytes_below(path_), kLimit / 4) << "a share that was made smaller";
}

TEST_F(QuarantineTest, TooLargeAPayloadIsLeftOutAndTooLargeARecordRefused) {
  auto quarantine = open(2000);
  ASSERT_TRUE(quarantine->keep(entry_of(1, 5000), 1).ok());
  const std::vector<QuarantineRow> rows = quarantine->list();
  ASSERT_EQ(rows.size(), 1u);
  const auto whole = read_quarantine_file(path_ + "/" + rows[0].file);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->found.record, entry_of(1).found.record);
  EXPECT_EQ(whole->found.groups[0], std::nullopt);
  QuarantineEntry huge = entry_of(2);
  huge.found.record.assign(3000, 'x');
  EXPECT_EQ(quarantine->keep(huge, 1).error().code, ErrorCode::kCapacity);
  EXPECT_EQ(quarantine->stats().refused, 1u);
}

TEST_F(QuarantineTest, ItsOwnDamageHarmsNothing) {
  {
    auto quarantine = open();
    ASSERT_TRUE(quarantine->keep(entry_of(1), 1).ok());
  }
  const std::string file = files_below(path_).at(0);
  std::ifstream in(file, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (size_t at = 0; at < good.size(); at += at < 200 ? 1 : 37) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    std::ofstream(file, std::ios::binary) << bad;
    EXPECT_FALSE(read_quarantine_file(file).ok()) << at;
    auto quarantine = open();
    EXPECT_EQ(quarantine->list().size(), 1u);
    EXPECT_EQ(quarantine->stats().bytes, bad.size());
  }
  for (size_t length = 0; length < good.size(); length += 19) {
    std::ofstream(file, std::ios::binary) << good.substr(0, length);
    EXPECT_FALSE(read_quarantine_file(file).ok()) << length;
    EXPECT_EQ(open()->list().size(), 1u);
  }
  std::ofstream(path_ + "/notes of someone") << "hello";
  std::ofstream(path_ + "/0000000000000009-x.bad.tmp") << "half";
  auto quarantine = open();
  EXPECT_EQ(quarantine->list().size(), 1u);
  EXPECT_EQ(quarantine->stats().bytes, bytes_below(path_)) << "and the half file is gone";
  ASSERT_TRUE(quarantine->keep(entry_of(3), 1).ok());
}

}  // namespace
}  // namespace ember
