// The map without pointers beside std::map, over seeds.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/prng.h"
#include "store/disk/block_map.h"

namespace ember {
namespace {

struct Number {
  uint32_t value = 0;
  bool vacant() const { return value == 0; }
};

// Few different first bytes, so that many hashes have one home.
BlockHash crowded_hash(Prng& random, uint64_t kinds) {
  BlockHash hash;
  const uint64_t kind = random.below(kinds);
  std::memcpy(hash.bytes.data() + 8, &kind, sizeof kind);
  const auto home = static_cast<uint32_t>(mix64(kind) % 5 * 0x33333333u);
  std::memcpy(hash.bytes.data(), &home, sizeof home);
  return hash;
}

TEST(BlockMapTest, AgreesWithAMapOverSeeds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Prng random(seed);
    BlockMap<Number> map;
    std::map<BlockHash, uint32_t> expected;
    const uint64_t kinds = 20 + random.below(400);
    for (int i = 0; i < 3000; ++i) {
      const BlockHash hash = crowded_hash(random, kinds);
      if (random.below(5) < 3) {
        const auto value = static_cast<uint32_t>(1 + random.below(1000));
        map.put(hash, {value});
        expected[hash] = value;
      } else if (const auto found = map.find(hash); found != map.end()) {
        map.erase(found);
        EXPECT_EQ(expected.erase(hash), 1u);
      } else {
        EXPECT_FALSE(expected.contains(hash));
      }
      ASSERT_EQ(map.size(), expected.size());
    }
    size_t walked = 0;
    for (const auto& [hash, number] : map) {
      ++walked;
      ASSERT_TRUE(expected.contains(hash));
      EXPECT_EQ(number.value, expected.at(hash));
    }
    EXPECT_EQ(walked, expected.size());
    for (const auto& [hash, value] : expected) {
      ASSERT_EQ(map.count(hash), 1u);
      EXPECT_EQ(map.find(hash)->second.value, value);
    }
  }
}

TEST(BlockMapTest, StaysDense) {
  BlockMap<Number> map;
  Prng random(3);
  for (uint32_t i = 1; i <= 50'000; ++i) {
    BlockHash hash;
    for (uint8_t& byte : hash.bytes) byte = static_cast<uint8_t>(random.below(256));
    map.put(hash, {i});
    if (i < 1000) continue;
    ASSERT_LE(map.memory_bytes(), i * sizeof(BlockMap<Number>::Entry) * 8 / 5);
  }
  map.clear();
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.memory_bytes(), 0u);
  EXPECT_EQ(map.begin(), map.end());
}

}  // namespace
}  // namespace ember
