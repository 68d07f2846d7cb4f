// Npy writer: a whole array or none; what is no regular file is written, not replaced.
#include "tools/commands/model/npy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "tests/support/temp_folder.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr std::array<float, 2> kValues = {1.5f, -2};
constexpr size_t kFileBytes = 128 + sizeof kValues;  // a header of two times 64 bytes

Status write_array(const std::string& path) {
  EMBER_ASSIGN(std::unique_ptr<NpyWriter> writer, NpyWriter::create(path, 1, kValues.size()));
  EMBER_TRY(writer->append(kValues));
  return writer->finish();
}

TEST(NpyWriterTest, FileIsThereWholeOrNotAtAll) {
  TempFolder folder;
  { auto unfinished = NpyWriter::create(folder / "array.npy", 1, kValues.size()); }
  EXPECT_TRUE(fs::is_empty(fs::path(folder / "array.npy").parent_path()));
  ASSERT_TRUE(write_array(folder / "array.npy").ok());
  EXPECT_EQ(fs::file_size(folder / "array.npy"), kFileBytes);
  EXPECT_FALSE(write_array(folder / "absent/array.npy").ok());
}

TEST(NpyWriterTest, PipeIsWrittenAndStaysAPipe) {
  TempFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(write_array(path).ok());
  std::array<char, 4096> bytes;
  EXPECT_EQ(::read(reader, bytes.data(), bytes.size()), static_cast<ssize_t>(kFileBytes));
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(path));
}

}  // namespace
}  // namespace ember
