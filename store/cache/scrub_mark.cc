// The scrub mark's bytes and its file.
#include "store/cache/scrub_mark.h"

#include <fstream>

#include "base/bytes.h"
#include "store/disk/durable_file.h"

namespace ember {
namespace {

constexpr uint16_t kInPass = 1;
constexpr uint16_t kHasAfter = 2;
constexpr size_t kMarkBytes = 4 + 2 + 2 + 16 + 8 + 8 + 8;
static_assert(kMarkBytes == 48);

}  // namespace

std::string encode_scrub_mark(const ScrubMark& mark) {
  std::string out;
  append_value(out, kScrubMarkMagic);
  append_value(out, kScrubMarkVersion);
  append_value(out, static_cast<uint16_t>((mark.in_pass ? kInPass : 0) |
                                          (mark.after ? kHasAfter : 0)));
  append_value(out, mark.after.value_or(BlockHash{}));
  append_value(out, mark.last_ended_unix_us);
  append_value(out, mark.passes);
  append_value(out, checksum64(as_bytes(out)));
  return out;
}

std::optional<ScrubMark> decode_scrub_mark(std::string_view bytes) {
  if (bytes.size() != kMarkBytes) return std::nullopt;
  const std::string_view body = bytes.substr(0, bytes.size() - 8);
  ByteReader reader(bytes);
  const auto magic = reader.read<uint32_t>();
  const auto version = reader.read<uint16_t>();
  const auto flags = reader.read<uint16_t>();
  const auto after = reader.read<BlockHash>();
  ScrubMark mark;
  mark.last_ended_unix_us = reader.read<int64_t>();
  mark.passes = reader.read<uint64_t>();
  const auto checksum = reader.read<uint64_t>();
  if (magic != kScrubMarkMagic || version != kScrubMarkVersion ||
      checksum != checksum64(as_bytes(body))) {
    return std::nullopt;
  }
  mark.in_pass = (flags & kInPass) != 0;
  if ((flags & kHasAfter) != 0) mark.after = after;
  return mark;
}

ScrubMark read_scrub_mark(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(kMarkBytes + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  return decode_scrub_mark(bytes).value_or(ScrubMark{});
}

Status write_scrub_mark(const std::string& path, const ScrubMark& mark) {
  return write_durable_file(nullptr, path, encode_scrub_mark(mark));
}

}  // namespace ember
