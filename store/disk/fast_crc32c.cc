// CRC-32C with the CPU's own instruction, three streams at a time.
#include "store/disk/fast_crc32c.h"

#include <dlfcn.h>

#include <array>

#include "base/bytes.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace ember {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;  // reflected

constexpr std::array<uint32_t, 256> make_byte_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kPolynomial : 0u);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kByteTable = make_byte_table();

#if defined(__x86_64__)

// The instruction answers after three cycles and can start each cycle: so three streams of this
// many bytes run side by side, and are joined by moving the first over the zeros of the others.
constexpr size_t kStreamBytes = 1024;

// What a register becomes by `bytes` zero bytes, as four tables of its bytes: the change is linear.
struct ZeroTables {
  std::array<std::array<uint32_t, 256>, 4> by_byte{};
  uint32_t operator()(uint32_t crc) const {
    return by_byte[0][crc & 0xffu] ^ by_byte[1][(crc >> 8) & 0xffu] ^
           by_byte[2][(crc >> 16) & 0xffu] ^ by_byte[3][crc >> 24];
  }
};

ZeroTables make_zero_tables(size_t bytes) {
  std::array<uint32_t, 32> bits{};
  for (uint32_t bit = 0; bit < 32; ++bit) {
    uint32_t crc = 1u << bit;
    for (size_t i = 0; i < bytes; ++i) crc = (crc >> 8) ^ kByteTable[crc & 0xffu];
    bits[bit] = crc;
  }
  ZeroTables tables;
  for (uint32_t place = 0; place < 4; ++place) {
    for (uint32_t value = 0; value < 256; ++value) {
      for (uint32_t bit = 0; bit < 8; ++bit) {
        if ((value >> bit & 1u) != 0) tables.by_byte[place][value] ^= bits[place * 8 + bit];
      }
    }
  }
  return tables;
}

__attribute__((target("sse4.2"))) uint32_t extend_by_instruction(uint32_t crc, const char* data,
                                                                 size_t size) {
  static const ZeroTables over_one = make_zero_tables(kStreamBytes);
  uint64_t first = crc ^ 0xffffffffu;
  for (; size >= 3 * kStreamBytes; data += 3 * kStreamBytes, size -= 3 * kStreamBytes) {
    uint64_t second = 0, third = 0;
    for (size_t at = 0; at < kStreamBytes; at += 8) {
      first = _mm_crc32_u64(first, load_unaligned<uint64_t>(data + at));
      second = _mm_crc32_u64(second, load_unaligned<uint64_t>(data + at + kStreamBytes));
      third = _mm_crc32_u64(third, load_unaligned<uint64_t>(data + at + 2 * kStreamBytes));
    }
    const uint32_t two = over_one(static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    first = over_one(two) ^ static_cast<uint32_t>(third);
  }
  for (; size >= 8; data += 8, size -= 8) {
    first = _mm_crc32_u64(first, load_unaligned<uint64_t>(data));
  }
  auto rest = static_cast<uint32_t>(first);
  for (; size > 0; ++data, --size) rest = _mm_crc32_u8(rest, static_cast<uint8_t>(*data));
  return rest ^ 0xffffffffu;
}

#endif

}  // namespace

uint32_t crc32c_extend_plain(uint32_t crc, const char* data, size_t size) {
  crc = ~crc;
  for (size_t i = 0; i < size; ++i) {
    crc = (crc >> 8) ^ kByteTable[(crc ^ static_cast<uint8_t>(data[i])) & 0xffu];
  }
  return ~crc;
}

uint32_t crc32c_extend(uint32_t crc, const char* data, size_t size) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return extend_by_instruction(crc, data, size);
#endif
  return crc32c_extend_plain(crc, data, size);
}

}  // namespace ember

#if defined(__x86_64__)

// RocksDB's declaration, which its installed headers leave out.
namespace rocksdb::crc32c {
uint32_t Extend(uint32_t crc, const char* data, size_t size);
__attribute__((visibility("default"))) uint32_t Extend(uint32_t crc, const char* data,
                                                       size_t size) {
  return ember::crc32c_extend(crc, data, size);
}
}  // namespace rocksdb::crc32c

namespace ember {
bool crc32c_is_ours() {
  const void* found = ::dlsym(RTLD_DEFAULT, "_ZN7rocksdb6crc32c6ExtendEjPKcm");
  return found == reinterpret_cast<const void*>(&rocksdb::crc32c::Extend);
}
}  // namespace ember

#else

// Elsewhere RocksDB's own is as good as ours.
namespace ember {
bool crc32c_is_ours() { return false; }
}  // namespace ember

#endif
