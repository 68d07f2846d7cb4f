// Codec: lossless against a plain reference, and harmless on any bytes.
#include "store/codec.h"

#include <gtest/gtest.h>

#include "store/codec/channel_planes.h"
#include "tests/store/made_rows.h"

namespace ember {
namespace {

constexpr GroupShape kSmall = {DType::kBf16, 40, 64};

void expect_round_trip(const GroupShape& shape, const std::vector<std::byte>& raw) {
  EncodedGroup coded = encode_group(shape, raw);
  ASSERT_LE(coded.payload.size(), raw.size());
  std::vector<std::byte> back(raw.size(), std::byte{0x55});
  Status status = decode_group(coded.codec, coded.payload, back);
  ASSERT_TRUE(status.ok()) << status.error().message;
  ASSERT_EQ(back, raw);
}

TEST(CodecTest, EveryBitPatternComesBack) {
  std::vector<std::byte> raw(2 * 65536);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    auto value = static_cast<uint16_t>(bits);
    std::memcpy(raw.data() + 2 * bits, &value, 2);
  }
  expect_round_trip({DType::kBf16, 1024, 64}, raw);
  expect_round_trip({DType::kBf16, 64, 1024}, raw);
  expect_round_trip({DType::kBf16, 1, 65536}, raw);
}

// Channels and tokens around the widths of tiles and rows; one layer and several.
TEST(CodecTest, EveryShapeComesBack) {
  Prng prng(1);
  for (uint32_t channels : {1u, 2u, 31u, 32u, 33u, 64u, 160u}) {
    for (uint32_t tokens : {1u, 2u, 7u, 15u, 16u, 17u, 31u, 63u, 64u, 65u, 100u, 128u, 150u}) {
      const uint32_t layers = 1 + static_cast<uint32_t>(prng.below(3));
      const GroupShape shape = {DType::kBf16, channels, tokens};
      expect_round_trip(shape, made_rows(prng, channels, layers * tokens));
      expect_round_trip(shape, random_bytes(prng, 2 * layers * tokens * channels));
    }
  }
  expect_round_trip(kSmall, {});
}

TEST(CodecTest, RowsOfChannelsShrinkByAThirdAndMore) {
  Prng prng(2);
  const std::vector<std::byte> raw = made_rows(prng, 576, 64 * 7);
  const EncodedGroup coded = encode_group({DType::kBf16, 576, 64}, raw);
  EXPECT_EQ(coded.codec, CodecId::kChannelPlanes);
  EXPECT_GT(static_cast<double>(raw.size()) / static_cast<double>(coded.payload.size()), 1.49);
}

TEST(CodecTest, TailsShrinkToo) {
  Prng prng(3);
  for (uint32_t tokens = 1; tokens < 64; ++tokens) {
    const std::vector<std::byte> raw = made_rows(prng, 160, 6 * tokens);
    const EncodedGroup coded = encode_group({DType::kBf16, 160, tokens}, raw);
    EXPECT_EQ(coded.codec, CodecId::kChannelPlanes) << tokens;
    const double ratio =
        static_cast<double>(raw.size()) / static_cast<double>(coded.payload.size());
    EXPECT_GT(ratio, tokens < 16 ? 1.25 : 1.38) << tokens;
  }
}

TEST(CodecTest, EqualBytesNearlyVanish) {
  const std::vector<std::byte> raw(2 * 160 * 64, std::byte{0});
  EXPECT_LT(encode_group({DType::kBf16, 160, 64}, raw).payload.size(), raw.size() / 2 + 100);
}

TEST(CodecTest, NoiseAndOtherTypesAreStored) {
  Prng prng(4);
  std::vector<std::byte> raw = random_bytes(prng, 4096);
  EXPECT_EQ(encode_group({DType::kBf16, 32, 64}, raw).codec, CodecId::kStored);
  raw = made_rows(prng, 40, 64);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kF8E4M3, DType::kU8}) {
    EXPECT_EQ(encode_group({dtype, 40, 64}, raw).codec, CodecId::kStored);
  }
  EXPECT_EQ(encode_group({DType::kBf16, 41, 64}, raw).codec, CodecId::kStored);
  EXPECT_EQ(encode_group({DType::kBf16, 0, 64}, raw).codec, CodecId::kStored);
}

// The fields that the header draws, taken apart by hand.
TEST(CodecTest, PayloadIsAsDrawn) {
  Prng prng(5);
  const std::vector<std::byte> raw = made_rows(prng, 40, 2 * 64);
  const EncodedGroup coded = encode_group(kSmall, raw);
  ASSERT_EQ(coded.codec, CodecId::kChannelPlanes);
  const std::string& payload = coded.payload;
  EXPECT_EQ(load_unaligned<uint32_t>(payload.data()), 40u);
  EXPECT_EQ(load_unaligned<uint32_t>(payload.data() + 4), 64u);
  const size_t head_rows = (2 * 40 + 63) / 64;
  for (size_t i = 0; i < raw.size() / 2; ++i) {
    const unsigned low = static_cast<unsigned>(raw[2 * i]);
    const unsigned high = static_cast<unsigned>(raw[2 * i + 1]);
    ASSERT_EQ(static_cast<unsigned char>(payload[8 + 4 * head_rows + i]),
              (high & 0x80u) + (low & 0x7fu));
  }
  // Head rows: the largest of the largest exponents, then of the classes.
  unsigned largest = 0;
  for (size_t i = 0; i < raw.size() / 2; ++i) {
    if (i % 40 >= 24 && i >= 64 * 40) continue;  // rows 64 .. 79 have a head row of their own
    if (i >= 64 * 40) continue;
    largest = std::max<unsigned>(
        largest, bf16_exponent(load_unaligned<uint16_t>(raw.data() + 2 * i)));
  }
  EXPECT_GE(static_cast<unsigned char>(payload[8]), largest);
}

TEST(CodecTest, UnknownCodecIsUnsupported) {
  std::vector<std::byte> raw(8);
  for (unsigned id : {1u, 3u, 9u, 255u}) {
    Status status = decode_group(static_cast<CodecId>(id), "12345678", raw);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  }
}

// Guard bytes around the destination show a write out of bounds even without a sanitizer; the
// payload lies at the end of its own memory, so that the sanitizer sees a read behind it.
void decode_between_guards(CodecId codec, std::string_view payload, size_t raw_bytes) {
  std::vector<std::byte> memory(raw_bytes + 128, std::byte{0xa5});
  Bytes raw(memory.data() + 64, raw_bytes);
  const std::vector<char> exact(payload.begin(), payload.end());
  Status status = decode_group(codec, std::string_view(exact.data(), exact.size()), raw);
  if (!status.ok()) {
    EXPECT_EQ(status.error().code, ErrorCode::kCorruption);
  }
  for (size_t i = 0; i < 64; ++i) {
    ASSERT_EQ(memory[i], std::byte{0xa5});
    ASSERT_EQ(memory[memory.size() - 1 - i], std::byte{0xa5});
  }
}

std::string damaged(Prng& prng, const std::string& good) {
  std::string bad = good;
  const uint64_t kind = prng.below(5);
  if (kind == 0) bad.resize(prng.below(bad.size()));
  if (kind == 1) bad.append(prng.below(300) + 1, 'x');
  const size_t flips = prng.below(8) + (kind >= 2 ? 1 : 0);
  for (size_t f = 0; f < flips && !bad.empty(); ++f) {
    size_t at = prng.below(bad.size());
    if (kind == 3) at = bad.size() - 1 - prng.below(std::min<size_t>(bad.size(), 800));
    if (kind == 4) at = prng.below(std::min<size_t>(bad.size(), 40));
    bad[at] = static_cast<char>(prng());
  }
  return bad;
}

TEST(CodecTest, DamagedPayloadsAreErrorsOrWrongBytesNeverAnAccessOutside) {
  Prng prng(6);
  for (uint32_t tokens : {64u, 40u, 3u}) {
    const std::vector<std::byte> raw = made_rows(prng, 40, 2 * tokens);
    const std::string good = encode_group({DType::kBf16, 40, tokens}, raw).payload;
    for (int round = 0; round < 4000; ++round) {
      const size_t size = prng.below(10) == 0 ? prng.below(8000) : raw.size();
      decode_between_guards(CodecId::kChannelPlanes, damaged(prng, good), size);
    }
  }
}

TEST(CodecTest, RandomPayloadsAreHarmless) {
  Prng prng(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes = random_bytes(prng, prng.below(600));
    std::string payload(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    decode_between_guards(CodecId::kStored, payload, prng.below(1200));
    // With a shape that fits, so that what follows it is reached.
    const uint32_t channels = 1 + static_cast<uint32_t>(prng.below(20));
    const uint32_t tokens = 1 + static_cast<uint32_t>(prng.below(20));
    std::string shaped;
    append_value(shaped, channels);
    append_value(shaped, tokens);
    decode_between_guards(CodecId::kChannelPlanes, shaped + payload, size_t{2} * channels * tokens);
  }
}

}  // namespace
}  // namespace ember
