// Fast CRC-32C: takes the place of the one in RocksDB's shared library, where that is slow.
//
// Journey    none; RocksDB calls it for every block and blob that it writes or reads
// Invariant  the same values as RocksDB's own, on every machine; only the speed differs
// Threads    any; pure
// Not here   our own checksum of raw bytes (store/record.h)
//
// Distributions build RocksDB for the oldest CPU: its CRC then runs at about 1 GB/s and is the
// slowest part of reading and of flushing. The function is called through the linker's table, so
// that a definition in the program (or in a library before RocksDB) wins. Where that does not
// happen, static linking for example, nothing breaks and nothing is gained.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ember {

// CRC-32C (Castagnoli) of the bytes before, continued over `size` bytes of `data`.
uint32_t crc32c_extend(uint32_t crc, const char* data, size_t size);
// One byte at a time: the plain reference.
uint32_t crc32c_extend_plain(uint32_t crc, const char* data, size_t size);
// Whether RocksDB's calls arrive here. Also what makes the linker keep this file.
bool crc32c_is_ours();

}  // namespace ember
