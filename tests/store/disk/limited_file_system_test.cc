// LimitedFileSystem: the sum is right and the limit holds, whatever is done to the files.
#include "store/disk/limited_file_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/bytes.h"
#include "store/disk/fast_crc32c.h"
#include "store/disk/rocksdb_log_check.h"
#include "tests/store/disk/disk_store_testing.h"

namespace ember {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;

class LimitedFileSystemTest : public testing::Test {
 protected:
  std::shared_ptr<LimitedFileSystem> make(uint64_t limit, bool read_only = false) {
    LimitedFileSystemOptions options{folder_.path(), limit, read_only};
    return std::make_shared<LimitedFileSystem>(rocksdb::FileSystem::Default(), options);
  }
  std::unique_ptr<rocksdb::FSWritableFile> create(LimitedFileSystem& files,
                                                  const std::string& name) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    EXPECT_TRUE(files.NewWritableFile(folder_.sub(name), FileOptions(), &file, nullptr).ok());
    return file;
  }
  static rocksdb::IOStatus append(rocksdb::FSWritableFile& file, size_t size) {
    rocksdb::IOStatus status = file.Append(std::string(size, 'x'), IOOptions(), nullptr);
    return status.ok() ? file.Flush(IOOptions(), nullptr) : status;
  }
  ScratchFolder folder_;
};

TEST_F(LimitedFileSystemTest, RefusesTheAppendThatWouldPassTheLimit) {
  auto files = make(1000);
  auto file = create(*files, "a");
  EXPECT_TRUE(append(*file, 600).ok());
  rocksdb::IOStatus refused = append(*file, 401);
  EXPECT_TRUE(refused.IsNoSpace()) << refused.ToString();
  EXPECT_EQ(bytes_below(folder_.path()), 600u);
  EXPECT_TRUE(append(*file, 400).ok());
  EXPECT_EQ(bytes_below(folder_.path()), 1000u);
  EXPECT_EQ(files->ledger().file_bytes(), 1000u);
  EXPECT_EQ(files->ledger().written().bytes(), 1000u);
}

TEST_F(LimitedFileSystemTest, CountsWhatWasThereBefore) {
  std::ofstream(folder_.sub("old")) << std::string(700, 'o');
  auto files = make(1000);
  EXPECT_EQ(files->ledger().file_bytes(), 700u);
  auto file = create(*files, "a");
  EXPECT_FALSE(append(*file, 301).ok());
  EXPECT_TRUE(append(*file, 300).ok());
}

TEST_F(LimitedFileSystemTest, DeletingRenamingAndCuttingGiveSpaceBack) {
  auto files = make(1000);
  for (const char* name : {"a", "b", "c"}) {
    auto file = create(*files, name);
    ASSERT_TRUE(append(*file, 300).ok());
  }
  ASSERT_TRUE(files->DeleteFile(folder_.sub("a"), IOOptions(), nullptr).ok());
  EXPECT_EQ(files->ledger().file_bytes(), 600u);
  ASSERT_TRUE(files->RenameFile(folder_.sub("b"), folder_.sub("c"), IOOptions(), nullptr).ok());
  EXPECT_EQ(files->ledger().file_bytes(), 300u);
  std::unique_ptr<rocksdb::FSWritableFile> again;
  ASSERT_TRUE(
      files->ReopenWritableFile(folder_.sub("c"), FileOptions(), &again, nullptr).ok());
  ASSERT_TRUE(again->Truncate(50, IOOptions(), nullptr).ok());
  EXPECT_EQ(files->ledger().file_bytes(), 50u);
  EXPECT_EQ(bytes_below(folder_.path()), 50u);
  again.reset();
  create(*files, "c").reset();
  EXPECT_EQ(files->ledger().file_bytes(), bytes_below(folder_.path()));
}

TEST_F(LimitedFileSystemTest, RandomWorkKeepsTheSumEqualToTheDisk) {
  auto files = make(20000);
  Prng prng(11);
  const char* const kNames[] = {"a.sst", "b.sst", "c.log", "d.blob", "e", "f"};
  std::map<std::string, std::unique_ptr<rocksdb::FSWritableFile>> open;
  for (int step = 0; step < 3000; ++step) {
    std::string name = kNames[prng.below(6)];
    switch (prng.below(6)) {
      case 0: open[name] = create(*files, name); break;
      case 1:
        open.erase(name);
        static_cast<void>(files->DeleteFile(folder_.sub(name), IOOptions(), nullptr).ok());
        break;
      case 2: {
        open.erase(name);
        std::string to = kNames[prng.below(6)];
        open.erase(to);
        if (to != name) {
          static_cast<void>(
              files->RenameFile(folder_.sub(name), folder_.sub(to), IOOptions(), nullptr).ok());
        }
        break;
      }
      default:
        if (open[name] != nullptr) static_cast<void>(append(*open[name], prng.below(3000)).ok());
    }
    ASSERT_EQ(files->ledger().file_bytes(), bytes_below(folder_.path())) << step;
    ASSERT_LE(bytes_below(folder_.path()), 20000u);
  }
}

TEST_F(LimitedFileSystemTest, AsksForWholePages) {
  auto files = make(1000);
  EXPECT_EQ(create(*files, "a")->GetRequiredBufferAlignment(), 4096u);
}

TEST_F(LimitedFileSystemTest, ReadOnlyChangesNothing) {
  std::ofstream(folder_.sub("old")) << "o";
  auto files = make(1000, true);
  std::unique_ptr<rocksdb::FSWritableFile> file;
  EXPECT_FALSE(files->NewWritableFile(folder_.sub("new"), FileOptions(), &file, nullptr).ok());
  EXPECT_FALSE(files->DeleteFile(folder_.sub("old"), IOOptions(), nullptr).ok());
  EXPECT_FALSE(files->CreateDir(folder_.sub("dir"), IOOptions(), nullptr).ok());
  EXPECT_EQ(files_below(folder_.path()).size(), 1u);
}

TEST_F(LimitedFileSystemTest, DirectIoProbeLeavesNothing) {
  direct_io_works(folder_.path());
  EXPECT_TRUE(files_below(folder_.path()).empty());
}

// A log of three records made by RocksDB's own writer is covered by the conversations' tests; here
// the search for a changed length, on the crc of the empty log.
TEST(RocksdbLogCheckTest, EmptyAndZeroFilesAreWhole) {
  EXPECT_EQ(check_log("", LogKind::kLog).state, LogVerdict::kWhole);
  EXPECT_EQ(check_log(std::string(100, '\0'), LogKind::kLog).state, LogVerdict::kWhole);
  EXPECT_EQ(check_log(std::string(100000, 'x'), LogKind::kLog).state, LogVerdict::kDamaged);
}

// A whole record of one byte's repetition, as RocksDB writes it.
std::string log_record(size_t length) {
  std::string body = '\1' + std::string(length, 'r');
  const uint32_t crc = crc32c_extend(0, body.data(), body.size());
  std::string record;
  append_value(record, ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
  append_value(record, static_cast<uint16_t>(length));
  return record + body;
}

TEST(RocksdbLogCheckTest, AWriteWhoseLastSectorWasLostIsTorn) {
  const std::string synced = log_record(400);
  const std::string write = log_record(143) + log_record(12);
  for (const LogKind kind : {LogKind::kLog, LogKind::kManifest}) {
    std::string bytes = synced + write;
    ASSERT_EQ(check_log(bytes, kind).state, LogVerdict::kWhole);
    ASSERT_GT(synced.size() + log_record(143).size(), 512u) << "its end lies in the next sector";
    std::fill(bytes.begin() + 512, bytes.end(), '\0');
    const LogVerdict lost = check_log(bytes, kind);
    EXPECT_EQ(lost.state, LogVerdict::kTorn);
    EXPECT_EQ(lost.synced_bytes, synced.size());
    bytes = synced + write;
    bytes[520] = '\0';
    EXPECT_EQ(check_log(bytes, kind).state, LogVerdict::kDamaged);
  }
}

}  // namespace
}  // namespace ember
