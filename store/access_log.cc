// Frames of the access log, and its two files.
#include "store/access_log.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/bytes.h"

namespace ember {
namespace {

constexpr uint32_t kLogMagic = 0x4c414d45;  // "EMAL"
constexpr uint32_t kLogVersion = 2;
constexpr size_t kHeaderBytes = 8;
constexpr size_t kMostNameBytes = 256;  // of a scope or a conversation
constexpr size_t kFixedBytes = 8 + 4 + 4 + 4 * kTierCount + 2 + 2 + 2 + 4 + 4;
constexpr size_t kMostPayload =
    kFixedBytes + 2 * kMostNameBytes + kMostAccessBlocks * sizeof(BlockHash);

size_t shared_blocks(const std::vector<BlockHash>& a, const std::vector<BlockHash>& b) {
  const size_t most = std::min(a.size(), b.size());
  size_t shared = 0;
  while (shared < most && a[shared] == b[shared]) ++shared;
  return shared;
}

void append_name(std::string& payload, std::string_view name) {
  name = name.substr(0, kMostNameBytes);
  append_value(payload, static_cast<uint16_t>(name.size()));
  payload.append(name);
}

// False: longer than any name.
bool read_name(ByteReader& reader, std::string& name) {
  const auto bytes = reader.read<uint16_t>();
  if (bytes > kMostNameBytes) return false;
  name = std::string(reader.read_bytes(bytes));
  return true;
}

auto file_source(std::ifstream& file) {
  return [&file](char* to, size_t bytes) {
    file.read(to, static_cast<std::streamsize>(bytes));
    return static_cast<size_t>(file.gcount()) == bytes;
  };
}

}  // namespace

std::string AccessFrames::header() {
  std::string bytes;
  append_value(bytes, kLogMagic);
  append_value(bytes, kLogVersion);
  return bytes;
}

void AccessFrames::remember(const std::vector<BlockHash>& blocks) {
  window_.push_back(blocks);
  if (window_.size() > kWindow) window_.pop_front();
}

std::string AccessFrames::encode(AccessEntry entry) {
  if (entry.blocks.size() > kMostAccessBlocks) entry.blocks.resize(kMostAccessBlocks);
  size_t shared = 0;
  size_t back = 0;
  for (size_t i = 1; i <= window_.size(); ++i) {
    const size_t alike = shared_blocks(window_[window_.size() - i], entry.blocks);
    if (alike <= shared) continue;
    shared = alike;
    back = i;
  }
  std::string payload;
  append_value(payload, entry.unix_us);
  append_value(payload, entry.tokens);
  append_value(payload, entry.prompt_tokens);
  for (const uint32_t tokens : entry.restored_tokens) append_value(payload, tokens);
  append_name(payload, entry.scope);
  append_name(payload, entry.conversation);
  append_value(payload, static_cast<uint16_t>(back));
  append_value(payload, static_cast<uint32_t>(shared));
  append_value(payload, static_cast<uint32_t>(entry.blocks.size() - shared));
  for (size_t i = shared; i < entry.blocks.size(); ++i) payload.append(entry.blocks[i].view());
  remember(entry.blocks);

  std::string frame;
  append_value(frame, static_cast<uint32_t>(payload.size()));
  frame.append(payload);
  append_value(frame, checksum64(as_bytes(payload)));
  return frame;
}

bool AccessFrames::decode_payload(std::string_view payload, AccessFrames& earlier,
                                  AccessEntry& entry) {
  ByteReader reader(payload);
  entry.unix_us = reader.read<int64_t>();
  entry.tokens = reader.read<uint32_t>();
  entry.prompt_tokens = reader.read<uint32_t>();
  for (uint32_t& tokens : entry.restored_tokens) tokens = reader.read<uint32_t>();
  if (!read_name(reader, entry.scope) || !read_name(reader, entry.conversation)) return false;
  const auto back = reader.read<uint16_t>();
  const auto shared = reader.read<uint32_t>();
  const auto own = reader.read<uint32_t>();
  if (own > kMostAccessBlocks || shared > kMostAccessBlocks - own) return false;
  if (own * sizeof(BlockHash) != reader.remaining()) return false;
  if (shared > 0) {
    if (back == 0 || back > earlier.window_.size()) return false;
    const std::vector<BlockHash>& blocks = earlier.window_[earlier.window_.size() - back];
    if (shared > blocks.size()) return false;
    entry.blocks.assign(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(shared));
  }
  for (uint32_t i = 0; i < own; ++i) entry.blocks.push_back(reader.read<BlockHash>());
  return reader.finished();
}

Result<std::vector<AccessEntry>> AccessFrames::decode(std::string_view bytes) {
  std::vector<AccessEntry> entries;
  EMBER_TRY(decode(bytes, [&](AccessEntry entry) { entries.push_back(std::move(entry)); }));
  return entries;
}

Status AccessFrames::decode(std::string_view bytes, const Visitor& visit) {
  UnfinishedAccessLog read;
  return decode_from(
      [&bytes](char* to, size_t count) {
        if (bytes.size() < count) return false;
        std::memcpy(to, bytes.data(), count);
        bytes.remove_prefix(count);
        return true;
      },
      visit, read);
}

std::optional<UnfinishedAccessLog> AccessFrames::go_on(const std::string& path) {
  UnfinishedAccessLog read;
  std::ifstream file(path, std::ios::binary);
  const Status decoded = decode_from(file_source(file), [](const AccessEntry&) {}, read);
  if (!decoded.ok() || read.bytes == 0 || file.bad()) return std::nullopt;
  return read;
}

Status AccessFrames::decode_from(const Source& source, const Visitor& visit,
                                 UnfinishedAccessLog& read) {
  std::array<char, kHeaderBytes> header;
  if (!source(header.data(), header.size())) return {};  // cut short while it was begun
  if (load_unaligned<uint32_t>(header.data()) != kLogMagic) {
    return {ErrorCode::kCorruption, "access log: it does not begin with EMAL"};
  }
  const auto version = load_unaligned<uint32_t>(header.data() + sizeof(kLogMagic));
  if (version != kLogVersion) {
    return {ErrorCode::kUnsupported, "access log: format version " + std::to_string(version) +
                                         ", this program reads " + std::to_string(kLogVersion)};
  }
  read.bytes = header.size();
  std::string payload;
  while (true) {
    std::array<char, sizeof(uint32_t)> length_bytes;
    if (!source(length_bytes.data(), length_bytes.size())) break;
    const auto length = load_unaligned<uint32_t>(length_bytes.data());
    if (length > kMostPayload) break;
    payload.resize(length);
    std::array<char, sizeof(uint64_t)> checksum;
    if (!source(payload.data(), length) || !source(checksum.data(), checksum.size())) break;
    if (checksum64(as_bytes(payload)) != load_unaligned<uint64_t>(checksum.data())) break;
    AccessEntry entry;
    if (!decode_payload(payload, read.frames, entry)) break;
    read.frames.remember(entry.blocks);
    read.bytes += length_bytes.size() + length + checksum.size();
    visit(std::move(entry));
  }
  return {};
}

std::string access_log_folder(const std::string& store) { return store + "/access_log"; }

Status visit_access_log(const std::string& store, const AccessFrames::Visitor& visit) {
  // Both are open before one is read: a holder that turns the ring meanwhile hides neither.
  struct Open {
    std::string path;
    std::ifstream file;
  };
  std::vector<Open> files;
  for (const char* name : {kAccessLogBefore, kAccessLogNow}) {
    const std::string path = access_log_folder(store) + "/" + name;
    std::ifstream file(path, std::ios::binary);
    std::error_code absent;
    if (file) {
      files.push_back({path, std::move(file)});
    } else if (std::filesystem::exists(path, absent)) {
      return {ErrorCode::kIo, path + ": cannot be read"};
    }
  }
  for (Open& open : files) {
    UnfinishedAccessLog read;
    const Status decoded = AccessFrames::decode_from(file_source(open.file), visit, read);
    if (!decoded.ok()) return {decoded.error().code, open.path + ": " + decoded.error().message};
    if (open.file.bad()) return {ErrorCode::kIo, open.path + ": cannot be read to its end"};
  }
  return {};
}

Result<std::vector<AccessEntry>> read_access_log(const std::string& store) {
  std::vector<AccessEntry> all;
  EMBER_TRY(visit_access_log(store, [&](AccessEntry entry) { all.push_back(std::move(entry)); }));
  return all;
}

}  // namespace ember
