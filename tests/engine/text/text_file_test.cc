// Tests of text files: gzip in all its states.
#include "engine/text/text_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/engine/text/small_tokenizer.h"

namespace ember {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

TEST(TextFileTest, PlainAndGzipGiveTheSame) {
  const TempFolder folder;
  std::string text(600000, 'x');
  for (size_t i = 0; i < text.size(); i += 7) text[i] = static_cast<char>('a' + i % 23);
  EXPECT_EQ(read_text_file(folder.write("plain", text)).value(), text);
  EXPECT_EQ(read_text_file(folder.write("packed", gzip(text))).value(), text);
  EXPECT_EQ(read_text_file(folder.write("members", gzip(text) + gzip("end"))).value(),
            text + "end");
  EXPECT_EQ(read_text_file(folder.write("empty", "")).value(), "");
  EXPECT_EQ(read_text_file(folder.write("packed_empty", gzip(""))).value(), "");
}

TEST(TextFileTest, DamagedGzipIsAnErrorAtEveryCut) {
  const TempFolder folder;
  const std::string packed = gzip("hello hello hello hello");
  for (size_t size = 2; size < packed.size(); ++size) {
    const auto cut = read_text_file(folder.write("cut", packed.substr(0, size)));
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_EQ(cut.error().code, ErrorCode::kCorruption);
  }
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 6] = static_cast<char>(wrong_sum[packed.size() - 6] ^ 1);
  EXPECT_FALSE(read_text_file(folder.write("sum", wrong_sum)).ok());
  EXPECT_FALSE(read_text_file(folder.write("tail", packed + "garbage")).ok());
}

TEST(TextFileTest, UnpackedSizeIsBounded) {
  const TempFolder folder;
  const std::string chunk(kMaxTextFileBytes / 4, ' ');
  const std::string packed = gzip(chunk);
  const auto bomb =
      read_text_file(folder.write("bomb", packed + packed + packed + packed + gzip("x")));
  ASSERT_FALSE(bomb.ok());
  EXPECT_EQ(bomb.error().code, ErrorCode::kCapacity) << bomb.error().message;
}

TEST(TextFileTest, MissingFileAndFolderAreNamed) {
  const TempFolder folder;
  for (const std::string& path : {folder.path() + "/none", folder.path()}) {
    const auto result = read_text_file(path);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kIo);
    EXPECT_NE(result.error().message.find(path), std::string::npos);
  }
}

}  // namespace
}  // namespace ember
