// The access log's frames: there and back, torn, damaged, made up.
#include <gtest/gtest.h>

#include "base/prng.h"
#include "store/access_log.h"

namespace ember {
namespace {

AccessEntry random_entry(Prng& random, const std::vector<AccessEntry>& earlier) {
  AccessEntry entry;
  entry.unix_us = static_cast<int64_t>(random.below(1u << 30));
  entry.tokens = static_cast<uint32_t>(random.below(10'000));
  entry.prompt_tokens = static_cast<uint32_t>(random.below(10'000));
  entry.restored_tokens[2] = static_cast<uint32_t>(random.below(5'000));
  entry.scope = random.below(2) == 0 ? "shared" : "tenant-" + std::to_string(random.below(9));
  if (random.below(2) == 0) entry.conversation = "c" + std::to_string(random.below(1000));
  if (!earlier.empty() && random.below(4) != 0) {
    entry.blocks = earlier[random.below(earlier.size())].blocks;
    entry.blocks.resize(random.below(entry.blocks.size() + 1));
  }
  for (uint64_t more = random.below(30); more > 0; --more) {
    BlockHash hash;
    for (uint8_t& byte : hash.bytes) byte = static_cast<uint8_t>(random.below(256));
    entry.blocks.push_back(hash);
  }
  return entry;
}

struct Log {
  std::vector<AccessEntry> entries;
  std::string bytes = AccessFrames::header();
};

Log random_log(uint64_t seed, size_t count) {
  Prng random(seed);
  Log log;
  AccessFrames frames;
  for (size_t i = 0; i < count; ++i) {
    log.entries.push_back(random_entry(random, log.entries));
    log.bytes += frames.encode(log.entries.back());
  }
  return log;
}

TEST(AccessLogTest, EntriesComeBackInOrder) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Log log = random_log(seed, 300);
    const auto read = AccessFrames::decode(log.bytes);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, log.entries);
  }
}

TEST(AccessLogTest, WhatRequestsHaveInCommonIsWrittenOnce) {
  AccessFrames frames;
  AccessEntry entry;
  entry.blocks.resize(1000);
  const size_t first = frames.encode(entry).size();
  entry.blocks.push_back(digest128(as_bytes("more")));
  EXPECT_GT(first, 16'000u);
  EXPECT_LT(frames.encode(entry).size(), 100u);
}

TEST(AccessLogTest, TornTailIsIgnoredAtEveryByte) {
  const Log log = random_log(7, 12);
  for (size_t size = 0; size <= log.bytes.size(); ++size) {
    const auto read = AccessFrames::decode(std::string_view(log.bytes).substr(0, size));
    ASSERT_TRUE(read.ok());
    ASSERT_LE(read->size(), log.entries.size());
    for (size_t i = 0; i < read->size(); ++i) ASSERT_EQ((*read)[i], log.entries[i]);
  }
}

TEST(AccessLogTest, AnyChangedByteEndsTheReadingThere) {
  const Log log = random_log(8, 20);
  Prng random(9);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = log.bytes;
    const size_t at = random.below(damaged.size());
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    const auto read = AccessFrames::decode(damaged);
    if (!read.ok()) {
      EXPECT_LT(at, 8u);
      continue;
    }
    ASSERT_LT(read->size(), log.entries.size());
    for (size_t k = 0; k < read->size(); ++k) ASSERT_EQ((*read)[k], log.entries[k]);
  }
}

// Frames with right checksums and wrong insides: nothing is read past their ends, nothing grows.
TEST(AccessLogTest, MadeUpFramesDoNoHarm) {
  Prng random(10);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = AccessFrames::header();
    AccessFrames frames;
    AccessEntry entry;
    entry.blocks.resize(5);
    bytes += frames.encode(entry);
    std::string payload = frames.encode(entry).substr(4);
    payload.resize(payload.size() - 8);
    for (int change = 0; change < 3; ++change) {
      payload[random.below(payload.size())] = static_cast<char>(random.below(256));
    }
    if (random.below(3) == 0) payload.resize(random.below(payload.size() + 1));
    append_value(bytes, static_cast<uint32_t>(payload.size()));
    bytes += payload;
    append_value(bytes, checksum64(as_bytes(payload)));
    const auto read = AccessFrames::decode(bytes);
    ASSERT_TRUE(read.ok());
    for (const AccessEntry& found : *read) ASSERT_LE(found.blocks.size(), kMostAccessBlocks);
  }
}

TEST(AccessLogTest, OtherVersionsAreRefusedByName) {
  std::string bytes = AccessFrames::header();
  bytes[4] = 9;
  const auto read = AccessFrames::decode(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(read.error().message.find("version 9"), std::string::npos);
}

}  // namespace
}  // namespace ember
