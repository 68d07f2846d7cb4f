// check_table: of all bits of a table, the one that would end the process.
#include "store/disk/table_check.h"

#include <gtest/gtest.h>
#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <filesystem>

#include "store/disk/disk_tier_impl.h"
#include "tests/store/disk/disk_store_testing.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

rocksdb::IOStatus check(const std::string& path) {
  const auto files = rocksdb::FileSystem::Default();
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  const auto opened = files->NewRandomAccessFile(path, rocksdb::FileOptions(), &file, nullptr);
  return opened.ok() ? check_table(*file, fs::file_size(path), path) : opened;
}

// The places, in bits, whose flips are refused.
std::vector<size_t> refused_bits(const std::string& path, bool highest_only) {
  std::vector<size_t> refused;
  std::string bytes = read_file(path);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    if (highest_only && bit % 8 != 7) continue;
    char& byte = bytes[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    write_file(path, bytes);
    if (check(path).IsCorruption()) refused.push_back(bit);
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
  }
  write_file(path, bytes);
  return refused;
}

// Another bit or two make a place lead elsewhere, which RocksDB would find too.
TEST(TableCheckTest, RefusesTheBitOfATableThatWouldEndTheProcess) {
  const ScratchFolder folder;
  const std::string path = folder.sub("some.sst");
  rocksdb::SstFileWriter writer{rocksdb::EnvOptions(), rocksdb::Options()};
  ASSERT_TRUE(writer.Open(path).ok());
  for (int i = 100; i < 130; ++i) ASSERT_TRUE(writer.Put(std::to_string(i), "value").ok());
  ASSERT_TRUE(writer.Finish().ok());
  EXPECT_TRUE(check(path).ok());
  const size_t refused = refused_bits(path, false).size();
  EXPECT_GE(refused, 1u);
  EXPECT_LE(refused, 4u);
}

TEST(TableCheckTest, CutTablesAreLeftToRocksDb) {
  const ScratchFolder folder;
  const std::string path = folder.sub("some.sst");
  for (const size_t size : {0u, 1u, 52u, 53u, 54u, 200u}) {
    write_file(path, std::string(size, '\x7f'));
    EXPECT_TRUE(check(path).ok());
  }
}

TEST(TableCheckTest, AStoreWithThatBitFlippedSaysSoAndTheProcessLives) {
  const ScratchFolder folder;
  const DiskTierOptions options = small_tier(folder.sub("blocks"), 16u << 20);
  {
    auto tier = DiskTier::open(options);
    ASSERT_TRUE(tier.ok()) << tier.error().message;
    MadeBlock block = make_block(1, 2, 20000);
    ASSERT_TRUE((*tier)->put(block.record, block.payloads).ok());
    ASSERT_TRUE((*tier)->flush().ok());
  }
  size_t tables = 0;
  for (const auto& entry : fs::directory_iterator(options.directory)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".sst")) continue;
    ++tables;
    const std::vector<size_t> refused = refused_bits(path, true);
    ASSERT_EQ(refused.size(), 1u) << path;
    const std::string whole = read_file(path);
    std::string damaged = whole;
    damaged[refused[0] / 8] = static_cast<char>(damaged[refused[0] / 8] ^ '\x80');
    write_file(path, damaged);
    const auto opened = DiskTier::open(options);
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().message.find("properties"), std::string::npos)
        << opened.error().message;
    write_file(path, whole);
  }
  EXPECT_GE(tables, 2u);
  EXPECT_TRUE(DiskTier::open(options).ok());
}

}  // namespace
}  // namespace ember
