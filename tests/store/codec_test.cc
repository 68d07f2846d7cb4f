// Codec: lossless against a plain reference, and harmless on any bytes.
#include "store/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/prng.h"

namespace ember {
namespace {

std::vector<std::byte> gaussian_rows(Prng& prng, size_t values) {
  std::vector<std::byte> raw(values * 2);
  for (size_t i = 0; i < values; ++i) {
    double radius = std::sqrt(-2 * std::log(1 - prng.uniform()));
    bf16 value = to_bf16(static_cast<float>(radius * std::cos(6.283185307 * prng.uniform())));
    std::memcpy(raw.data() + 2 * i, &value, 2);
  }
  return raw;
}

std::vector<std::byte> random_bytes(Prng& prng, size_t size) {
  std::vector<std::byte> raw(size);
  for (std::byte& b : raw) b = static_cast<std::byte>(prng());
  return raw;
}

void expect_round_trip(CodecId codec, const std::vector<std::byte>& raw) {
  EncodedGroup coded = encode_group(codec, raw);
  ASSERT_LE(coded.payload.size(), raw.size() + kCodecFrameBytes);
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
  expect_round_trip(CodecId::kExponentPlane, raw);
}

TEST(CodecTest, EveryLengthComesBack) {
  Prng prng(1);
  for (size_t values = 0; values < 300; ++values) {
    expect_round_trip(CodecId::kExponentPlane, gaussian_rows(prng, values));
    expect_round_trip(CodecId::kStored, random_bytes(prng, values));
    expect_round_trip(CodecId::kExponentPlane, random_bytes(prng, values));
  }
}

TEST(CodecTest, LatentsShrinkByTwoFifths) {
  Prng prng(2);
  std::vector<std::byte> raw = gaussian_rows(prng, 64 * 576 * 4);
  EncodedGroup coded = encode_group(CodecId::kExponentPlane, raw);
  EXPECT_EQ(coded.codec, CodecId::kExponentPlane);
  EXPECT_GT(static_cast<double>(raw.size()) / static_cast<double>(coded.payload.size()), 1.4);
  expect_round_trip(CodecId::kExponentPlane, raw);
}

TEST(CodecTest, NoiseIsStored) {
  Prng prng(3);
  std::vector<std::byte> raw = random_bytes(prng, 4096);
  EXPECT_EQ(encode_group(CodecId::kExponentPlane, raw).codec, CodecId::kStored);
}

// The planes of the payload, taken apart by hand: value i's sign and mantissa is byte 4 + i.
TEST(CodecTest, SignAndMantissaPlaneAgreesWithAScalarReference) {
  Prng prng(4);
  std::vector<std::byte> raw = gaussian_rows(prng, 1001);
  EncodedGroup coded = encode_group(CodecId::kExponentPlane, raw);
  ASSERT_EQ(coded.codec, CodecId::kExponentPlane);
  for (size_t i = 0; i < 1001; ++i) {
    unsigned low = static_cast<unsigned>(raw[2 * i]);
    unsigned high = static_cast<unsigned>(raw[2 * i + 1]);
    unsigned expected = (high & 0x80u) + (low & 0x7fu);
    ASSERT_EQ(static_cast<unsigned char>(coded.payload[4 + i]), expected) << i;
  }
}

TEST(CodecTest, OnlyBf16IsSplit) {
  EXPECT_EQ(preferred_codec(DType::kBf16), CodecId::kExponentPlane);
  EXPECT_EQ(preferred_codec(DType::kF32), CodecId::kStored);
  EXPECT_EQ(preferred_codec(DType::kF8E4M3), CodecId::kStored);
}

TEST(CodecTest, UnknownCodecIsUnsupported) {
  std::vector<std::byte> raw(8);
  Status status = decode_group(static_cast<CodecId>(9), "12345678", raw);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
}

// Guard bytes around the destination show a write out of bounds even without a sanitizer.
void decode_between_guards(CodecId codec, std::string_view payload, size_t raw_bytes) {
  std::vector<std::byte> memory(raw_bytes + 128, std::byte{0xa5});
  Bytes raw(memory.data() + 64, raw_bytes);
  Status status = decode_group(codec, payload, raw);
  if (!status.ok()) {
    EXPECT_EQ(status.error().code, ErrorCode::kCorruption);
  }
  for (size_t i = 0; i < 64; ++i) {
    ASSERT_EQ(memory[i], std::byte{0xa5});
    ASSERT_EQ(memory[memory.size() - 1 - i], std::byte{0xa5});
  }
}

TEST(CodecTest, DamagedPayloadsAreErrorsOrWrongBytesNeverAWriteOutside) {
  Prng prng(5);
  std::vector<std::byte> raw = gaussian_rows(prng, 2000);
  const std::string good = encode_group(CodecId::kExponentPlane, raw).payload;
  for (int round = 0; round < 4000; ++round) {
    std::string bad = good;
    uint64_t kind = prng.below(4);
    if (kind == 0) bad.resize(prng.below(bad.size()));
    if (kind == 1) bad.append(prng.below(50) + 1, 'x');
    size_t flips = prng.below(8) + (kind >= 2 ? 1 : 0);
    for (size_t f = 0; f < flips && !bad.empty(); ++f) {
      size_t at = kind == 3 ? bad.size() - 1 - prng.below(std::min<size_t>(bad.size(), 800))
                            : prng.below(bad.size());
      bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(1 + prng.below(255)));
    }
    size_t size = prng.below(10) == 0 ? prng.below(8000) : raw.size();
    decode_between_guards(CodecId::kExponentPlane, bad, size);
  }
}

TEST(CodecTest, RandomPayloadsAreHarmless) {
  Prng prng(6);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes = random_bytes(prng, prng.below(600));
    std::string payload(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    decode_between_guards(CodecId::kExponentPlane, payload, prng.below(1200));
    decode_between_guards(CodecId::kStored, payload, prng.below(1200));
  }
}

// A length that agrees by chance, before a frame that claims to be huge.
TEST(CodecTest, FrameThatClaimsMoreThanTheGroupIsRefused) {
  std::vector<std::byte> big(1 << 20);
  EncodedGroup coded = encode_group(CodecId::kExponentPlane, big);
  ASSERT_EQ(coded.codec, CodecId::kExponentPlane);
  std::string frame = coded.payload.substr(4 + (1 << 19));
  std::string payload;
  append_value(payload, static_cast<uint32_t>(frame.size()));
  payload.append(100, 'm');
  payload += frame;
  std::vector<std::byte> raw(200);
  Status status = decode_group(CodecId::kExponentPlane, payload, raw);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kCorruption);
}

}  // namespace
}  // namespace ember
