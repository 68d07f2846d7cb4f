// Finding and proving data blocks in the bytes of a table.
#include "store/disk/table_blocks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "prefix_index/block_hash.h"
#include "store/disk/fast_crc32c.h"

namespace ember {
namespace {

constexpr size_t kTrailerBytes = 5;
constexpr size_t kInternalBytes = 8;
constexpr size_t kMostKeyBytes = 1024;
constexpr uint32_t kMaskDelta = 0xa282ead8u;
constexpr uint8_t kErasedKind = 0;
constexpr uint8_t kValueKind = 1;

std::optional<uint32_t> take_varint(std::string_view& bytes) {
  uint32_t value = 0;
  for (unsigned shift = 0; shift < 35 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint32_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

uint32_t load32(const char* at) { return load_unaligned<uint32_t>(at); }

// `block` ends with the compression byte, which is 0.
bool checksum_agrees(std::string_view block, uint32_t stored) {
  const std::string_view contents = block.substr(0, block.size() - 1);
  if (static_cast<uint32_t>(checksum64(as_bytes(contents))) == stored) return true;
  const uint32_t crc = crc32c_extend(0, block.data(), block.size());
  return ((crc >> 15) | (crc << 17)) + kMaskDelta == stored;
}

struct Entry {
  std::string key;  // with the sequence number
  std::string_view value;
};

// The data block that begins `bytes`: its entries, and how long it is with its trailer.
struct DataBlock {
  std::vector<Entry> entries;
  size_t bytes = 0;
};

std::optional<DataBlock> parse_block(std::string_view bytes) {
  DataBlock block;
  std::string_view rest = bytes;
  std::string last;
  while (true) {
    std::string_view entry = rest;
    const std::optional<uint32_t> shared = take_varint(entry);
    const std::optional<uint32_t> further = take_varint(entry);
    const std::optional<uint32_t> value = take_varint(entry);
    if (!shared || !further || !value) return std::nullopt;
    // No key is empty: these are the first of the offsets, which is 0.
    if (*shared == 0 && *further == 0) break;
    const bool fits = *shared <= last.size() && *further <= kMostKeyBytes &&
                      uint64_t{*further} + *value <= entry.size();
    if (!fits || *shared + *further < kInternalBytes) return std::nullopt;
    last.resize(*shared);
    last += entry.substr(0, *further);
    block.entries.push_back({last, entry.substr(*further, *value)});
    rest = entry.substr(size_t{*further} + *value);
  }
  if (block.entries.empty()) return std::nullopt;
  const size_t entries_bytes = bytes.size() - rest.size();
  // How many offsets there are stands behind them: try each number that may be.
  for (size_t offsets = 1; offsets <= block.entries.size(); ++offsets) {
    const size_t end = entries_bytes + 4 * offsets;
    if (end + 4 + kTrailerBytes > bytes.size()) return std::nullopt;
    if (load32(bytes.data() + end) != offsets || bytes[end + 4] != 0) continue;
    if (!checksum_agrees(bytes.substr(0, end + 5), load32(bytes.data() + end + 5))) continue;
    block.bytes = end + 4 + kTrailerBytes;
    return block;
  }
  return std::nullopt;
}

// A block's first entry shares nothing, and its key has the length of one of ours.
bool may_begin_block(std::string_view bytes) {
  return bytes.size() > 16 && bytes[0] == 0 &&
         static_cast<uint8_t>(bytes[1]) > kInternalBytes &&
         static_cast<uint8_t>(bytes[1]) <= 64;
}

}  // namespace

TableScan scan_table_blocks(std::string_view table, const TableRowVisitor& visit) {
  TableScan scan;
  size_t at = 0;
  while (at < table.size()) {
    const std::string_view rest = table.substr(at);
    std::optional<DataBlock> block;
    if (may_begin_block(rest)) block = parse_block(rest);
    if (!block) {
      ++at;
      continue;
    }
    at += block->bytes;
    ++scan.blocks;
    for (const Entry& entry : block->entries) {
      const size_t key_bytes = entry.key.size() - kInternalBytes;
      const auto internal = load_unaligned<uint64_t>(entry.key.data() + key_bytes);
      const auto kind = static_cast<uint8_t>(internal & 0xff);
      if (kind != kErasedKind && kind != kValueKind) continue;
      ++scan.rows;
      visit({std::string_view(entry.key).substr(0, key_bytes), entry.value, internal >> 8,
             kind == kErasedKind});
    }
  }
  return scan;
}

Result<std::string> read_as_far_as_possible(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error{ErrorCode::kIo, path + ": " + std::strerror(errno)};
  struct stat status {};
  std::string bytes;
  if (::fstat(fd, &status) == 0) bytes.resize(static_cast<size_t>(status.st_size));
  constexpr size_t kStep = 1u << 20, kPage = 4096;
  size_t at = 0;
  size_t step = kStep;
  while (at < bytes.size()) {
    const size_t wanted = std::min(step, bytes.size() - at);
    const ssize_t got = ::pread(fd, bytes.data() + at, wanted, static_cast<off_t>(at));
    if (got > 0) {
      at += static_cast<size_t>(got);
      step = at % kStep == 0 ? kStep : step;
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (step == kPage) at += wanted;  // zeros
    step = kPage;
  }
  ::close(fd);
  return bytes;
}

}  // namespace ember
