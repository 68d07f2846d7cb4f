// The bytes of the shadow file, frame by frame.
#include "store/cache/shadow_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/bytes.h"
#include "prefix_index/block_hash.h"
#include "store/tenants.h"

namespace ember {
namespace {

constexpr uint32_t kHeadKey = 0xffffffffu;
constexpr size_t kFrameBytes = kShadowFrameExtraBytes + kMarksPerFrame * kShadowMarkBytes;

size_t seal_bytes(const ShadowPlace& place) {
  return place.sealer == nullptr ? size_t{0} : kValueSealBytes;
}

std::string key_of(uint32_t number) {
  std::string key;
  append_value(key, number);
  return key;
}

// The plain bytes of a part of the file; nothing where it cannot be read or opened.
std::optional<std::string> read_part(const ShadowPlace& place, uint32_t key, uint64_t offset,
                                     size_t most) {
  std::ifstream file(place.path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  std::string bytes(most, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  std::string opened;
  const Result<std::optional<std::string_view>> plain =
      plain_form(place.sealer.get(), {ValueKind::kShadows, key_of(key)}, bytes, opened);
  if (!plain.ok() || !plain->has_value()) return std::nullopt;
  return std::string(**plain);
}

bool known_policy(uint8_t policy) {
  return policy <= static_cast<uint8_t>(EvictionPolicy::kS3Fifo);
}

bool is_score(double score) { return std::isfinite(score) && score >= 0; }

}  // namespace

std::string encode_shadow_head(const ShadowHead& head) {
  std::string out;
  append_value(out, kShadowFileMagic);
  append_value(out, kShadowFileVersion);
  append_value(out, static_cast<uint8_t>(head.policy));
  append_value(out, static_cast<uint8_t>(head.leader));
  append_value(out, head.written_unix_us);
  append_value(out, head.limit_bytes);
  append_value(out, head.capacity_blocks);
  append_value(out, std::bit_cast<uint64_t>(head.scores.leaf_lru));
  append_value(out, std::bit_cast<uint64_t>(head.scores.s3_fifo));
  append_value(out, checksum64(as_bytes(out)));
  return out;
}

std::optional<ShadowHead> decode_shadow_head(std::string_view bytes) {
  if (bytes.size() != kShadowHeadBytes) return std::nullopt;
  ByteReader reader(bytes);
  const auto magic = reader.read<uint32_t>();
  const auto version = reader.read<uint16_t>();
  const auto policy = reader.read<uint8_t>();
  const auto leader = reader.read<uint8_t>();
  ShadowHead head;
  head.written_unix_us = reader.read<int64_t>();
  head.limit_bytes = reader.read<uint64_t>();
  head.capacity_blocks = reader.read<uint64_t>();
  head.scores.leaf_lru = std::bit_cast<double>(reader.read<uint64_t>());
  head.scores.s3_fifo = std::bit_cast<double>(reader.read<uint64_t>());
  const bool right =
      magic == kShadowFileMagic && version == kShadowFileVersion &&
      reader.read<uint64_t>() == checksum64(as_bytes(bytes.substr(0, kShadowHeadBytes - 8))) &&
      known_policy(policy) && known_policy(leader) && is_score(head.scores.leaf_lru) &&
      is_score(head.scores.s3_fifo);
  if (!right) return std::nullopt;
  head.policy = static_cast<EvictionPolicy>(policy);
  head.leader = static_cast<EvictionPolicy>(leader);
  return head;
}

std::string encode_shadow_frame(uint32_t number, std::span<const ShadowMark> marks) {
  std::string out;
  out.reserve(kShadowFrameExtraBytes + marks.size() * kShadowMarkBytes);
  append_value(out, number);
  append_value(out, static_cast<uint32_t>(marks.size()));
  for (const ShadowMark& mark : marks) {
    append_value(out, static_cast<uint8_t>(mark.queue | mark.count << 4));
    append_value(out, mark.id);
  }
  append_value(out, checksum64(as_bytes(out)));
  return out;
}

std::optional<std::vector<ShadowMark>> decode_shadow_frame(uint32_t number,
                                                           std::string_view bytes) {
  if (bytes.size() < kShadowFrameExtraBytes) return std::nullopt;
  const std::string_view body = bytes.substr(0, bytes.size() - 8);
  ByteReader reader(bytes);
  const auto found = reader.read<uint32_t>();
  const auto count = reader.read<uint32_t>();
  if (found != number || count > kMarksPerFrame) return std::nullopt;
  if (bytes.size() != kShadowFrameExtraBytes + count * kShadowMarkBytes) return std::nullopt;
  if (load_unaligned<uint64_t>(body.data() + body.size()) != checksum64(as_bytes(body))) {
    return std::nullopt;
  }
  std::vector<ShadowMark> marks(count);
  for (ShadowMark& mark : marks) {
    const auto where = reader.read<uint8_t>();
    mark.queue = where & 0xf;
    mark.count = static_cast<uint8_t>(where >> 4);
    mark.id = reader.read<uint64_t>();
  }
  return marks;
}

std::optional<ShadowHead> read_shadow_head(const ShadowPlace& place) {
  const std::optional<std::string> bytes =
      read_part(place, kHeadKey, 0, kShadowHeadBytes + seal_bytes(place));
  return bytes ? decode_shadow_head(*bytes) : std::nullopt;
}

uint32_t shadow_frames(const ShadowPlace& place) {
  struct stat found {};
  const uint64_t head = kShadowHeadBytes + seal_bytes(place);
  if (::stat(place.path.c_str(), &found) != 0) return 0;
  const auto size = static_cast<uint64_t>(found.st_size);
  if (size <= head) return 0;
  const uint64_t frame = kFrameBytes + seal_bytes(place);
  return static_cast<uint32_t>(std::min<uint64_t>((size - head + frame - 1) / frame, kHeadKey));
}

std::optional<std::vector<ShadowMark>> read_shadow_frame(const ShadowPlace& place,
                                                         uint32_t number) {
  const uint64_t frame = kFrameBytes + seal_bytes(place);
  const uint64_t offset = kShadowHeadBytes + seal_bytes(place) + number * frame;
  const std::optional<std::string> bytes = read_part(place, number, offset, frame);
  return bytes ? decode_shadow_frame(number, *bytes) : std::nullopt;
}

ShadowWriter::~ShadowWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(unfinished().c_str());
}

Status ShadowWriter::failed(const char* what) const {
  const ErrorCode code = errno == ENOSPC ? ErrorCode::kCapacity : ErrorCode::kIo;
  return {code, unfinished() + ": " + what + ": " + std::strerror(errno)};
}

Status ShadowWriter::begin(const ShadowHead& head) {
  fd_ = ::open(unfinished().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd_ < 0) return failed("cannot be opened");
  if (::fchmod(fd_, 0600) != 0) return failed("cannot be closed to others");
  return append(kHeadKey, encode_shadow_head(head));
}

Status ShadowWriter::add(std::span<const ShadowMark> marks) {
  const uint32_t number = frames_++;
  return append(number, encode_shadow_frame(number, marks));
}

Status ShadowWriter::append(uint32_t key, std::string plain) {
  EMBER_ASSIGN(const std::string stored,
               stored_form(place_.sealer.get(), kSharedScopeName,
                           {ValueKind::kShadows, key_of(key)}, std::move(plain)));
  for (size_t done = 0; done < stored.size();) {
    const ssize_t written = ::write(fd_, stored.data() + done, stored.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("cannot be written");
    done += static_cast<size_t>(written);
  }
  bytes_ += stored.size();
  return {};
}

Status ShadowWriter::finish() {
  if (::fdatasync(fd_) != 0) return failed("cannot be synced");
  ::close(std::exchange(fd_, -1));
  if (::rename(unfinished().c_str(), place_.path.c_str()) == 0) return {};
  const Status status = failed("cannot be named");
  ::unlink(unfinished().c_str());
  return status;
}

}  // namespace ember
