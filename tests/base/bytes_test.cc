// Bytes: bounded reading, hexadecimal, and sizes as people write them.
#include "base/bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "base/prng.h"

namespace ember {
namespace {

TEST(ByteReaderTest, ValuesComeBackInOrder) {
  std::string bytes;
  append_value(bytes, uint8_t{7});
  append_value(bytes, uint32_t{0x01020304});
  append_value(bytes, int64_t{-5});
  bytes += "abc";
  EXPECT_EQ(bytes.substr(1, 4), std::string("\x04\x03\x02\x01")) << "little-endian";
  ByteReader reader(bytes);
  EXPECT_EQ(reader.read<uint8_t>(), 7);
  EXPECT_EQ(reader.read<uint32_t>(), 0x01020304u);
  EXPECT_EQ(reader.read<int64_t>(), -5);
  EXPECT_FALSE(reader.finished());
  EXPECT_EQ(reader.remaining(), 3u);
  EXPECT_EQ(reader.read_bytes(3), "abc");
  EXPECT_TRUE(reader.finished());
}

TEST(ByteReaderTest, AShortReadFailsForGoodAndYieldsZeros) {
  const std::string bytes = "\x01\x02\x03";
  ByteReader reader(bytes);
  EXPECT_EQ(reader.read<uint32_t>(), 0u);
  EXPECT_TRUE(reader.failed());
  EXPECT_EQ(reader.read<uint8_t>(), 0) << "what is left is not handed out after a failure";
  EXPECT_TRUE(reader.read_bytes(1).empty());
  EXPECT_FALSE(reader.finished());
}

TEST(ByteReaderTest, AHugeLengthIsOnlyAShortRead) {
  ByteReader reader("abc");
  EXPECT_TRUE(reader.read_bytes(~size_t{0}).empty());
  EXPECT_TRUE(reader.failed());
}

TEST(ByteReaderTest, AnEmptyReadOfNothingIsNoFailure) {
  ByteReader reader("");
  EXPECT_TRUE(reader.read_bytes(0).empty());
  EXPECT_TRUE(reader.finished());
}

TEST(BytesTest, UnalignedLoadsReadTheBytes) {
  const std::string bytes("\xff\x01\x00\x00\x00", 5);
  EXPECT_EQ(load_unaligned<uint32_t>(bytes.data() + 1), 1u);
}

TEST(BytesTest, HexGoesBothWays) {
  Prng random(1);
  std::string bytes(257, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  EXPECT_EQ(from_hex(to_hex(as_bytes(bytes))), bytes);
  EXPECT_EQ(to_hex(as_bytes(std::string_view("\x00\x0f\xa0", 3))), "000fa0");
  EXPECT_EQ(from_hex("00Fa"), std::string("\x00\xfa", 2));
  EXPECT_EQ(from_hex(""), "");
}

TEST(BytesTest, ForeignOrHalfHexIsRefused) {
  EXPECT_EQ(from_hex("0"), std::nullopt);
  EXPECT_EQ(from_hex("0g"), std::nullopt);
  EXPECT_EQ(from_hex("0x"), std::nullopt);
  EXPECT_EQ(from_hex(" 00 "), std::nullopt);
}

TEST(BytesTest, SizesAreShownWithTheirUnit) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_bytes(uint64_t{5} << 40), "5.00 TiB");
  EXPECT_EQ(human_bytes(uint64_t{5} << 50), "5120.00 TiB");
}

TEST(BytesTest, SizesAreReadInBothSystems) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("64MiB"), uint64_t{64} << 20);
  EXPECT_EQ(parse_bytes("20GiB"), uint64_t{20} << 30);
  EXPECT_EQ(parse_bytes("1.5GB"), 1'500'000'000u);
  EXPECT_EQ(parse_bytes("2K"), 2048u);
  EXPECT_EQ(parse_bytes("7 B"), 7u);
  EXPECT_EQ(parse_bytes("0"), 0u);
}

TEST(BytesTest, MalformedSizesAreRefused) {
  for (const char* text : {"", "GiB", "-1", "+1", " 1", "1 GiBs", "1gib", "1e40", "nan", "inf",
                           "1..5", "1,5GB", "99999999999GiB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace ember
