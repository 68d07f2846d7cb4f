// Fast CRC-32C: the standard's vector, the plain reference over seeds, and that RocksDB calls it.
#include "store/disk/fast_crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "base/prng.h"

namespace ember {
namespace {

TEST(FastCrc32cTest, KnownVectors) {
  EXPECT_EQ(crc32c_extend(0, "123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c_extend(0, std::string(32, '\0').data(), 32), 0x8a9136aau);  // RFC 3720
  EXPECT_EQ(crc32c_extend(0, "", 0), 0u);
}

TEST(FastCrc32cTest, AgreesWithThePlainOneAtEveryLengthAndOffset) {
  Prng prng(7);
  std::string bytes(20'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(prng.below(256));
  for (int round = 0; round < 600; ++round) {
    const size_t from = prng.below(100);
    const size_t size = round < 100 ? static_cast<size_t>(round) : prng.below(bytes.size() - from);
    const auto before = static_cast<uint32_t>(prng());
    ASSERT_EQ(crc32c_extend(before, bytes.data() + from, size),
              crc32c_extend_plain(before, bytes.data() + from, size))
        << from << " " << size;
  }
}

// A guard: should a distribution link RocksDB in another way, this says so before a bench does.
TEST(FastCrc32cTest, RocksDbCallsOurs) {
#if defined(__x86_64__)
  EXPECT_TRUE(crc32c_is_ours());
#else
  GTEST_SKIP() << "only where RocksDB's own is slow";
#endif
}

}  // namespace
}  // namespace ember
