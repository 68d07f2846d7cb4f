// Row code: every level of instructions writes and reads what the plain one does; every class too.
#include <gtest/gtest.h>

#include <array>

#include "store/codec/row_classes.h"
#include "store/codec/row_code.h"
#include "tests/store/made_rows.h"

namespace ember {
namespace {

struct CodedRows {
  std::vector<uint8_t> largest;
  std::vector<uint8_t> classes;
  std::vector<uint8_t> bits;
};

CodedRows encode(const RowCode& code, const std::vector<uint8_t>& values, size_t tokens) {
  const size_t rows = values.size() / kRowTokens;
  CodedRows coded;
  coded.largest.resize(rows);
  coded.classes.resize(rows);
  coded.bits.resize(rows * kMostRowBytes + kWriteSlack);
  BitWriter writer(coded.bits.data());
  code.encode(values.data(), rows, tokens, {coded.largest.data(), coded.classes.data()}, writer);
  coded.bits.resize(writer.finish());
  return coded;
}

std::vector<uint8_t> decode(const RowCode& code, CodedRows coded, size_t tokens) {
  const size_t rows = coded.largest.size();
  std::vector<uint8_t> values(rows * kRowTokens);
  const uint64_t limit = 8 * coded.bits.size();
  coded.bits.resize(coded.bits.size() + kMostDamagedRowBits / 8 + kReadSlack);
  BitReader reader(coded.bits.data(), limit);
  EXPECT_EQ(code.decode({coded.largest.data(), coded.classes.data()}, rows, tokens, reader,
                        values.data()),
            rows);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % kRowTokens >= tokens) values[i] = 0;
  }
  return values;
}

// Rows of every kind that a class is made for, and of kinds that none is.
std::vector<uint8_t> some_rows(Prng& prng, size_t rows, size_t tokens) {
  std::vector<uint8_t> values(rows * kRowTokens);
  for (size_t r = 0; r < rows; ++r) {
    const uint64_t top = prng.below(256);
    const uint64_t width = 1 + prng.below(r % 2 == 0 ? 6 : 20);
    const uint64_t stray = prng.below(4) == 0 ? 10 : 0;
    const uint64_t peak = prng.below(4);  // how far below the largest the most frequent one lies
    for (size_t t = 0; t < tokens; ++t) {
      uint64_t below = 0;
      while (below < 30 && prng.below(width) != 0) ++below;
      below = t > 0 && prng.below(10) != 0 ? below + peak : below;
      values[r * kRowTokens + t] = static_cast<uint8_t>(
          prng.below(100) < stray ? prng() : top - std::min(below, top));
    }
  }
  return values;
}

TEST(CodecRowsTest, PlainLevelComesBackForEveryTokenCount) {
  Prng prng(1);
  for (size_t tokens = 1; tokens <= kRowTokens; ++tokens) {
    const std::vector<uint8_t> values = some_rows(prng, 40, tokens);
    const CodedRows coded = encode(scalar_row_code(), values, tokens);
    ASSERT_EQ(decode(scalar_row_code(), coded, tokens), values) << tokens;
  }
}

TEST(CodecRowsTest, VectorLevelWritesAndReadsTheSame) {
  if (avx2_row_code() == nullptr) GTEST_SKIP() << "no AVX2 with BMI2 here";
  Prng prng(2);
  for (int seed = 0; seed < 20; ++seed) {
    for (size_t tokens = 1; tokens <= kRowTokens; ++tokens) {
      const std::vector<uint8_t> values = some_rows(prng, 20, tokens);
      const CodedRows plain = encode(scalar_row_code(), values, tokens);
      const CodedRows fast = encode(*avx2_row_code(), values, tokens);
      ASSERT_EQ(fast.largest, plain.largest) << tokens;
      ASSERT_EQ(fast.classes, plain.classes) << tokens;
      ASSERT_EQ(fast.bits, plain.bits) << tokens;
      ASSERT_EQ(decode(*avx2_row_code(), plain, tokens), values) << tokens;
    }
  }
}

TEST(CodecRowsTest, DamagedBitsReadTheSameOnBothLevels) {
  if (avx2_row_code() == nullptr) GTEST_SKIP() << "no AVX2 with BMI2 here";
  Prng prng(3);
  for (int round = 0; round < 2000; ++round) {
    const size_t tokens = 1 + prng.below(kRowTokens);
    CodedRows coded = encode(scalar_row_code(), some_rows(prng, 1, tokens), tokens);
    coded.classes[0] = static_cast<uint8_t>(prng());
    coded.bits.resize(kMostDamagedRowBits / 8);
    for (uint8_t& byte : coded.bits) byte = static_cast<uint8_t>(prng() | prng());
    ASSERT_EQ(decode(*avx2_row_code(), coded, tokens), decode(scalar_row_code(), coded, tokens));
  }
}

TEST(CodecRowsTest, VectorLevelSplitsAndMergesTheSame) {
  if (avx2_row_code() == nullptr) GTEST_SKIP() << "no AVX2 with BMI2 here";
  Prng prng(4);
  for (size_t tokens : {1u, 15u, 16u, 17u, 33u, 64u}) {
    for (size_t channels : {1u, 31u, 32u, 33u, 100u, 160u}) {
      const std::vector<std::byte> raw = random_bytes(prng, 2 * tokens * channels);
      std::array<std::vector<uint8_t>, 2> exponents;
      std::array<std::vector<uint8_t>, 2> rest;
      const std::array<const RowCode*, 2> levels = {&scalar_row_code(), avx2_row_code()};
      for (size_t i = 0; i < 2; ++i) {
        exponents[i].resize(channels * kRowTokens);
        rest[i].resize(tokens * channels);
        levels[i]->split(raw.data(), tokens, channels, exponents[i].data(), rest[i].data());
        std::vector<std::byte> back(raw.size());
        levels[i]->merge(exponents[i].data(), rest[i].data(), tokens, channels, back.data());
        ASSERT_EQ(back, raw);
      }
      ASSERT_EQ(exponents[0], exponents[1]);
      ASSERT_EQ(rest[0], rest[1]);
    }
  }
}

// A row is as long as the class table says, and no class would have made it shorter.
TEST(CodecRowsTest, TheShortestClassIsTaken) {
  Prng prng(5);
  std::array<size_t, kRowClasses> taken = {};
  for (int round = 0; round < 3000; ++round) {
    const std::vector<uint8_t> row = some_rows(prng, 1, kRowTokens);
    const CodedRows coded = encode(row_code(), row, kRowTokens);
    ++taken[coded.classes[0]];
    const auto bits_of = [&](size_t class_id) {
      size_t bits = 0;
      for (uint8_t value : row) {
        bits += kClassLengths[class_id][std::min<unsigned>(coded.largest[0] - value, kRanks)];
      }
      return bits;
    };
    if (coded.classes[0] == kConstantRow) {
      EXPECT_TRUE(coded.bits.empty());
      continue;
    }
    ASSERT_EQ(coded.bits.size(), (bits_of(coded.classes[0]) + 7) / 8);
    const size_t taken_bits = bits_of(coded.classes[0]) + kClassCosts[coded.classes[0]];
    for (size_t k = 0; k < kRowClasses; ++k) ASSERT_GE(bits_of(k) + kClassCosts[k], taken_bits);
  }
  for (size_t k = kRawRow; k < kRowClasses; ++k) EXPECT_GT(taken[k], 0u) << k;
}

TEST(CodecRowsTest, EveryClassRanksEveryDistanceOnce) {
  for (size_t k = kRawRow + 1; k < kRowClasses; ++k) {
    for (unsigned distance = 0; distance < kRanks; ++distance) {
      EXPECT_LT(class_rank(kClasses[k], distance), kRanks) << k << " " << distance;
    }
  }
}

TEST(CodecRowsTest, BitsOfAnyWidthComeBack) {
  Prng prng(6);
  std::vector<std::pair<uint64_t, unsigned>> parts(5000);
  std::vector<uint8_t> bytes(parts.size() * 8 + kReadSlack);
  BitWriter writer(bytes.data());
  for (auto& [bits, count] : parts) {
    count = static_cast<unsigned>(prng.below(65));
    bits = count == 0 ? 0 : prng() >> (64 - count);
    writer.put(bits, count);
  }
  const size_t size = writer.finish();
  BitReader reader(bytes.data(), 8 * size);
  for (const auto& [bits, count] : parts) {
    const uint64_t mask = count == 0 ? 0 : ~uint64_t{0} >> (64 - count);
    ASSERT_EQ(reader.take(count) & mask, bits);
  }
  EXPECT_EQ((reader.position() + 7) / 8, size);
}

}  // namespace
}  // namespace ember
