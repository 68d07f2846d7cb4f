// RocksDB log check: walks the records of a log file and proves each.
#include "store/disk/rocksdb_log_check.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <vector>

#include "base/bytes.h"

namespace ember {
namespace {

constexpr size_t kBlockBytes = 32768;
constexpr size_t kHeaderBytes = 7;
constexpr uint32_t kMaskDelta = 0xa282ead8u;
constexpr uint8_t kLastRecordType = 4;  // full, first, middle, last; 0 is padding

// CRC-32C (Castagnoli), one byte at a time: logs here are small.
constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

uint32_t masked_crc(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<uint8_t>(c)) & 0xffu];
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

// Whether a record with a payload of `length` bytes and a right checksum begins `bytes`.
bool proven(std::string_view bytes, size_t length) {
  if (bytes.size() < kHeaderBytes + length) return false;
  auto type = static_cast<uint8_t>(bytes[6]);
  if (type == 0 || type > kLastRecordType) return false;
  return load_unaligned<uint32_t>(bytes.data()) == masked_crc(bytes.substr(6, 1 + length));
}

bool holds_proven_record(std::string_view bytes) {
  for (size_t at = 1; at + kHeaderBytes <= bytes.size(); ++at) {
    std::string_view rest = bytes.substr(at);
    size_t length = load_unaligned<uint16_t>(rest.data() + 4);
    if (length > 0 && proven(rest, length)) return true;
  }
  return false;
}

// `rest` begins with a record that reaches past the end of the file. Torn by a crash, or a changed
// length? Changed, if the record is right with what there is, or if a right one follows.
bool torn_by_a_crash(std::string_view rest) {
  if (rest.size() < kHeaderBytes) return true;
  if (proven(rest, rest.size() - kHeaderBytes)) return false;
  return !holds_proven_record(rest);
}

bool all_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

// One block of 32 KiB; `last`: the file ends in it.
bool block_is_whole(std::string_view block, bool last) {
  size_t at = 0;
  while (block.size() - at >= kHeaderBytes) {
    std::string_view rest = block.substr(at);
    size_t length = load_unaligned<uint16_t>(rest.data() + 4);
    if (kHeaderBytes + length > rest.size()) return last && torn_by_a_crash(rest);
    if (all_zero(rest.substr(0, kHeaderBytes))) return all_zero(rest);
    if (!proven(rest, length)) return false;
    at += kHeaderBytes + length;
  }
  return last || all_zero(block.substr(at));
}

}  // namespace

bool log_is_whole(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size(); at += kBlockBytes) {
    bool last = at + kBlockBytes >= bytes.size();
    if (!block_is_whole(bytes.substr(at, kBlockBytes), last)) return false;
  }
  return true;
}

bool log_file_is_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::string bytes;
  std::vector<char> chunk(1u << 20);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    bytes.append(chunk.data(), static_cast<size_t>(file.gcount()));
  }
  return !file.bad() && log_is_whole(bytes);
}

}  // namespace ember
