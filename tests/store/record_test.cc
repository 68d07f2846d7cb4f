// Record: the bytes are as drawn, and no changed byte is believed.
#include "store/record.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace ember {
namespace {

BlockHash some_hash(Prng& prng) {
  BlockHash hash;
  for (uint8_t& b : hash.bytes) b = static_cast<uint8_t>(prng());
  return hash;
}

BlockRecord some_record(uint64_t seed) {
  Prng prng(seed);
  BlockRecord record;
  record.tail = prng.below(2) == 1;
  record.name_space = some_hash(prng);
  record.scope = std::string(prng.below(20), 's');
  record.publisher = std::string(prng.below(20), 'p');
  record.hash = some_hash(prng);
  record.parent = some_hash(prng);
  record.numerics_build = prng();
  record.position = static_cast<uint32_t>(prng.below(1000));
  record.epoch = static_cast<uint32_t>(prng.below(1000));
  Stream stream;
  stream.row_values = 160;
  record.streams.assign(prng.below(3), stream);
  for (uint64_t i = prng.below(5); i > 0; --i) {
    GroupEntry group;
    group.layers = 2;
    group.raw_bytes = static_cast<uint32_t>(prng.below(100000));
    group.stored_bytes = group.raw_bytes;
    group.codec = CodecId::kChannelPlanes;
    group.checksum = prng();
    record.groups.push_back(group);
  }
  record.tokens.resize(1 + prng.below(64));
  for (TokenId& token : record.tokens) token = static_cast<TokenId>(prng.below(129280));
  return record;
}

// Puts a right checksum on changed bytes, so that what lies behind it is tested too.
std::string resealed(std::string bytes) {
  bytes.resize(bytes.size() - 8);
  append_value(bytes, checksum64(as_bytes(bytes)));
  return bytes;
}

TEST(RecordTest, ComesBackAsItWas) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    BlockRecord record = some_record(seed);
    Result<BlockRecord> back = decode_record(encode_record(record));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, record);
  }
}

TEST(RecordTest, FieldsLieWhereTheHeaderDrawsThem) {
  BlockRecord record = some_record(3);
  record.scope = "shared";
  record.publisher = "acme";
  record.streams.resize(1);
  record.groups.resize(2);
  std::string bytes = encode_record(record);
  EXPECT_EQ(bytes.substr(0, 4), "EMBK");
  const auto number = [&bytes](size_t at) { return load_unaligned<uint32_t>(bytes.data() + at); };
  const auto half = [&bytes](size_t at) { return load_unaligned<uint16_t>(bytes.data() + at); };
  EXPECT_EQ(half(4), kRecordVersion);
  EXPECT_EQ(bytes.substr(8, 16), record.name_space.view());
  EXPECT_EQ(bytes.substr(24, 16), record.hash.view());
  EXPECT_EQ(bytes.substr(40, 16), record.parent.view());
  EXPECT_EQ(load_unaligned<uint64_t>(bytes.data() + 56), record.numerics_build);
  EXPECT_EQ(number(64), record.position);
  EXPECT_EQ(number(68), record.tokens.size());
  EXPECT_EQ(number(72), record.epoch);
  EXPECT_EQ(half(76), 6);
  EXPECT_EQ(half(78), 4);
  EXPECT_EQ(half(80), 1);
  EXPECT_EQ(half(82), 2);
  EXPECT_EQ(bytes.substr(88, 10), "sharedacme");
  EXPECT_EQ(half(98), 1);   // kind
  EXPECT_EQ(half(100), 12);  // body
  EXPECT_EQ(number(102), record.streams[0].row_values);
  const size_t groups = 98 + 4 + 12;
  EXPECT_EQ(load_unaligned<uint64_t>(bytes.data() + groups + 32), record.groups[1].checksum);
  EXPECT_EQ(number(groups + 32 + 16), record.groups[1].raw_bytes);
  EXPECT_EQ(number(groups + 64), static_cast<uint32_t>(record.tokens[0]));
  size_t body = bytes.size() - 8;
  EXPECT_EQ(body, groups + 64 + 4 * record.tokens.size());
  EXPECT_EQ(load_unaligned<uint64_t>(bytes.data() + body),
            checksum64(as_bytes(std::string_view(bytes).substr(0, body))));
}

TEST(RecordTest, EveryFlippedByteIsDamage) {
  const std::string good = encode_record(some_record(9));
  for (size_t at = 0; at < good.size(); ++at) {
    for (char mask : {char{1}, char{0x40}, static_cast<char>(0x80)}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ mask);
      Result<BlockRecord> back = decode_record(bad);
      ASSERT_FALSE(back.ok()) << at;
      EXPECT_EQ(back.error().code, ErrorCode::kCorruption) << at;
    }
  }
}

TEST(RecordTest, EveryCutIsDamage) {
  const std::string good = encode_record(some_record(10));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode_record(good.substr(0, size)).ok()) << size;
    if (size > 16) {
      EXPECT_FALSE(decode_record(resealed(good.substr(0, size))).ok()) << size;
    }
  }
}

TEST(RecordTest, IntactRecordOfAnotherVersionIsRefusedByName) {
  std::string bytes = encode_record(some_record(11));
  bytes[4] = 7;
  Result<BlockRecord> back = decode_record(resealed(bytes));
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(back.error().message.find("version 7"), std::string::npos);
}

TEST(RecordTest, UnknownStreamKindsAreSkipped) {
  BlockRecord record = some_record(12);
  record.streams.resize(2, Stream{});
  record.streams[0].row_values = 160;
  record.streams[1].row_values = 161;
  record.scope.clear();
  record.publisher.clear();
  std::string bytes = encode_record(record);
  size_t kind_at = sizeof(RecordHead);
  ASSERT_EQ(load_unaligned<uint16_t>(bytes.data() + kind_at), 1u);
  bytes[kind_at] = 77;
  Result<BlockRecord> back = decode_record(resealed(bytes));
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back->streams.size(), 1u);
  EXPECT_EQ(back->streams[0].row_values, 161u);
}

TEST(RecordTest, ResealedNonsenseIsNeverTrusted) {
  const std::string good = encode_record(some_record(13));
  Prng prng(14);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (uint64_t flips = 1 + prng.below(4); flips > 0; --flips) {
      bad[6 + prng.below(bad.size() - 6)] = static_cast<char>(prng());
    }
    Result<BlockRecord> back = decode_record(resealed(bad));
    if (!back.ok()) continue;
    for (const GroupEntry& group : back->groups) {
      EXPECT_LE(group.raw_bytes, kMaxGroupBytes);
      EXPECT_LE(group.stored_bytes, group.raw_bytes + kCodecFrameBytes);
    }
    EXPECT_LE(back->tokens.size(), kMaxBlockTokens);
  }
}

}  // namespace
}  // namespace ember
