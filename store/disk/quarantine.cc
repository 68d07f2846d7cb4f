// Quarantine: files of bad records, written once, dropped oldest first.
#include "store/quarantine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/bytes.h"
#include "base/mutex.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr uint16_t kFlagTail = 1;
constexpr uint16_t kFlagTrimmed = 2;
constexpr uint32_t kUnread = 0xffffffff;
constexpr size_t kMostParts = 4097;  // a metadata value and kMaxGroups payloads
constexpr size_t kFixedBytes = 4 + 2 + 2 + 8 + 16 + 4 + 2 + 2;
constexpr size_t kMostHeaderBytes = kFixedBytes + 4 * kMostParts + kMostReasonBytes + 16;
static_assert(kFixedBytes == 40);
constexpr std::string_view kSuffix = ".bad";
constexpr std::string_view kUnfinishedSuffix = ".tmp";

struct Header {
  QuarantineRow row;
  uint16_t flags = 0;
  std::vector<uint32_t> parts;
  uint64_t parts_checksum = 0;
  size_t bytes = 0;
};

std::string parts_of(const FoundRecord& found, std::vector<uint32_t>& sizes) {
  std::string parts = found.record;
  sizes.push_back(found.record.empty() ? kUnread : static_cast<uint32_t>(found.record.size()));
  for (const std::optional<std::string>& group : found.groups) {
    sizes.push_back(group ? static_cast<uint32_t>(group->size()) : kUnread);
    if (group) parts += *group;
  }
  return parts;
}

std::string encode(const QuarantineEntry& entry, bool trimmed, int64_t unix_us) {
  std::vector<uint32_t> sizes;
  const std::string parts = parts_of(entry.found, sizes);
  const std::string reason = entry.reason.substr(0, kMostReasonBytes);
  std::string out;
  append_value(out, kQuarantineMagic);
  append_value(out, kQuarantineVersion);
  append_value(out, static_cast<uint16_t>((entry.tail ? kFlagTail : 0) |
                                          (trimmed ? kFlagTrimmed : 0)));
  append_value(out, unix_us);
  append_value(out, entry.hash);
  append_value(out, entry.position);
  append_value(out, static_cast<uint16_t>(reason.size()));
  append_value(out, static_cast<uint16_t>(sizes.size()));
  for (uint32_t size : sizes) append_value(out, size);
  out += reason;
  append_value(out, checksum64(as_bytes(parts)));
  append_value(out, checksum64(as_bytes(out)));
  return out + parts;
}

// The header that begins `bytes`, which may end before the parts do.
Result<Header> decode_header(const std::string& path, std::string_view bytes) {
  const Error damaged{ErrorCode::kCorruption, path + ": a quarantine file whose header is damaged"};
  ByteReader reader(bytes);
  Header header;
  const auto magic = reader.read<uint32_t>();
  const auto version = reader.read<uint16_t>();
  header.flags = reader.read<uint16_t>();
  header.row.unix_us = reader.read<int64_t>();
  header.row.hash = reader.read<BlockHash>();
  header.row.position = reader.read<uint32_t>();
  const auto reason_bytes = reader.read<uint16_t>();
  const auto part_count = reader.read<uint16_t>();
  if (magic != kQuarantineMagic || reason_bytes > kMostReasonBytes || part_count > kMostParts) {
    return damaged;
  }
  header.parts.resize(part_count);
  for (uint32_t& size : header.parts) size = reader.read<uint32_t>();
  header.row.reason = std::string(reader.read_bytes(reason_bytes));
  header.parts_checksum = reader.read<uint64_t>();
  const size_t proven = bytes.size() - reader.remaining();
  const auto checksum = reader.read<uint64_t>();
  if (reader.failed() || checksum64(as_bytes(bytes.substr(0, proven))) != checksum) return damaged;
  if (version != kQuarantineVersion) {
    return Error{ErrorCode::kUnsupported, path + ": quarantine version " + std::to_string(version) +
                                              ", this program reads " +
                                              std::to_string(kQuarantineVersion)};
  }
  header.row.tail = (header.flags & kFlagTail) != 0;
  header.bytes = proven + sizeof checksum;
  return header;
}

Result<std::string> read_file(const std::string& path, size_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::kIo, path + ": cannot be read"};
  std::string bytes(most_bytes, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad()) return Error{ErrorCode::kIo, path + ": cannot be read"};
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

Status write_file(const std::string& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool good = fd >= 0;
  while (good && !bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    good = written >= 0;
    if (good) bytes.remove_prefix(static_cast<size_t>(written));
  }
  const int code = errno;
  if (fd >= 0) ::close(fd);
  if (good) return {};
  const bool full = code == ENOSPC || code == EDQUOT;
  return {full ? ErrorCode::kCapacity : ErrorCode::kIo,
          path + ": cannot be written: " + std::strerror(code)};
}

// "0000000000000007-<hash>.bad" to 7; nothing for a file that is not ours.
std::optional<uint64_t> number_of(const std::string& name) {
  constexpr size_t kDigits = 16;
  if (name.size() < kDigits + kSuffix.size() || !name.ends_with(kSuffix)) return std::nullopt;
  uint64_t number = 0;
  for (char c : name.substr(0, kDigits)) {
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (!digit) return std::nullopt;
    number = number * 16 + static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return number;
}

std::string name_of(uint64_t number, const BlockHash& hash) {
  const uint64_t swapped = __builtin_bswap64(number);
  std::string big_endian;
  append_value(big_endian, swapped);
  return to_hex(as_bytes(big_endian)) + "-" + hash.hex() + std::string(kSuffix);
}

class QuarantineImpl final : public Quarantine {
 public:
  QuarantineImpl(const std::string& directory, uint64_t limit_bytes, bool read_only)
      : directory_(directory), limit_bytes_(limit_bytes), read_only_(read_only) {
    scan();
  }

  Status keep(const QuarantineEntry& entry, int64_t unix_us) override;
  Result<bool> remove(const std::string& file) override;
  std::vector<QuarantineRow> list() const override;
  QuarantineStats stats() const override;

 private:
  struct File {
    std::string name;
    uint64_t bytes = 0;
  };
  void scan();
  Status write(const QuarantineEntry& entry, const std::string& bytes) EMBER_REQUIRES(mutex_);
  void drop_oldest() EMBER_REQUIRES(mutex_);

  const std::string directory_;
  const uint64_t limit_bytes_;
  const bool read_only_;
  mutable Mutex mutex_;
  std::map<uint64_t, File> files_ EMBER_GUARDED_BY(mutex_);
  // What is kept already: hash and checksum of the parts.
  std::set<std::pair<BlockHash, uint64_t>> known_ EMBER_GUARDED_BY(mutex_);
  uint64_t other_bytes_ EMBER_GUARDED_BY(mutex_) = 0;  // of files that are not ours to drop
  uint64_t bytes_ EMBER_GUARDED_BY(mutex_) = 0;        // those included
  QuarantineStats counted_ EMBER_GUARDED_BY(mutex_);
};

void QuarantineImpl::scan() {
  MutexLock lock(mutex_);
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    const std::string name = it->path().filename().string();
    const uint64_t size = it->is_regular_file(gone) ? it->file_size(gone) : 0;
    if (gone) continue;
    if (name.ends_with(kUnfinishedSuffix) && !read_only_) {
      fs::remove(it->path(), gone);  // of a process that died while it wrote
      continue;
    }
    bytes_ += size;
    if (const std::optional<uint64_t> number = number_of(name)) {
      files_[*number] = {name, size};
    } else {
      other_bytes_ += size;
    }
  }
  if (read_only_) return;
  for (const auto& [number, file] : files_) {
    const std::string path = directory_ + "/" + file.name;
    const Result<std::string> bytes = read_file(path, kMostHeaderBytes);
    if (!bytes.ok()) continue;
    const Result<Header> header = decode_header(path, *bytes);
    if (header.ok()) known_.emplace(header->row.hash, header->parts_checksum);
  }
  // A share that was made smaller since.
  while (!files_.empty() && (bytes_ > limit_bytes_ || files_.size() > kMostQuarantineFiles)) {
    drop_oldest();
  }
}

void QuarantineImpl::drop_oldest() {
  const auto oldest = files_.begin();
  std::error_code ignored;
  fs::remove(directory_ + "/" + oldest->second.name, ignored);
  bytes_ -= oldest->second.bytes;
  files_.erase(oldest);
  ++counted_.dropped;
}

Status QuarantineImpl::keep(const QuarantineEntry& entry, int64_t unix_us) {
  if (read_only_) return {ErrorCode::kUnsupported, directory_ + ": opened for reading only"};
  MutexLock lock(mutex_);
  std::vector<uint32_t> sizes;
  const uint64_t checksum = checksum64(as_bytes(parts_of(entry.found, sizes)));
  if (known_.contains({entry.hash, checksum})) return {};
  std::string bytes = encode(entry, false, unix_us);
  if (bytes.size() + other_bytes_ > limit_bytes_) {
    QuarantineEntry trimmed = entry;
    for (std::optional<std::string>& group : trimmed.found.groups) group.reset();
    bytes = encode(trimmed, true, unix_us);
  }
  const Status written = write(entry, bytes);
  if (written.ok()) {
    known_.emplace(entry.hash, checksum);
    ++counted_.kept;
  } else {
    ++counted_.refused;
  }
  return written;
}

Status QuarantineImpl::write(const QuarantineEntry& entry, const std::string& bytes) {
  if (bytes.size() + other_bytes_ > limit_bytes_) {
    return {ErrorCode::kCapacity, directory_ + ": a record of " + std::to_string(bytes.size()) +
                                      " bytes is larger than the share of " +
                                      std::to_string(limit_bytes_)};
  }
  if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) {
    return {ErrorCode::kIo, directory_ + ": cannot be made: " + std::strerror(errno)};
  }
  while (!files_.empty() &&
         (bytes_ + bytes.size() > limit_bytes_ || files_.size() >= kMostQuarantineFiles)) {
    drop_oldest();
  }
  const uint64_t number = files_.empty() ? 1 : files_.rbegin()->first + 1;
  const std::string name = name_of(number, entry.hash);
  const std::string path = directory_ + "/" + name;
  const std::string unfinished = path + std::string(kUnfinishedSuffix);
  Status written = write_file(unfinished, bytes);
  if (written.ok() && ::rename(unfinished.c_str(), path.c_str()) != 0) {
    written = Error{ErrorCode::kIo, path + ": cannot be made: " + std::strerror(errno)};
  }
  if (!written.ok()) {
    ::unlink(unfinished.c_str());
    return written;
  }
  files_[number] = {name, bytes.size()};
  bytes_ += bytes.size();
  return {};
}

Result<bool> QuarantineImpl::remove(const std::string& file) {
  if (read_only_) return Error{ErrorCode::kUnsupported, directory_ + ": opened for reading only"};
  MutexLock lock(mutex_);
  const std::optional<uint64_t> number = number_of(file);
  const auto found = number ? files_.find(*number) : files_.end();
  if (found == files_.end() || found->second.name != file) return false;
  const std::string path = directory_ + "/" + file;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Error{ErrorCode::kIo, path + ": cannot be removed: " + std::strerror(errno)};
  }
  bytes_ -= found->second.bytes;
  files_.erase(found);
  return true;
}

std::vector<QuarantineRow> QuarantineImpl::list() const {
  std::map<uint64_t, File> files;
  {
    MutexLock lock(mutex_);
    files = files_;
  }
  std::vector<QuarantineRow> rows;
  for (const auto& [number, file] : files) {
    const std::string path = directory_ + "/" + file.name;
    QuarantineRow row;
    const Result<std::string> bytes = read_file(path, kMostHeaderBytes);
    const Result<Header> header = bytes.ok() ? decode_header(path, *bytes) : bytes.error();
    if (header.ok()) {
      row = header->row;
    } else {
      row.reason = header.error().message;
    }
    row.file = file.name;
    row.bytes = file.bytes;
    rows.push_back(std::move(row));
  }
  return rows;
}

QuarantineStats QuarantineImpl::stats() const {
  MutexLock lock(mutex_);
  QuarantineStats stats = counted_;
  stats.records = files_.size();
  stats.bytes = bytes_;
  stats.limit_bytes = limit_bytes_;
  return stats;
}

}  // namespace

std::unique_ptr<Quarantine> Quarantine::open(const std::string& directory, uint64_t limit_bytes,
                                             bool read_only) {
  return std::make_unique<QuarantineImpl>(directory, limit_bytes, read_only);
}

Result<QuarantineEntry> read_quarantine_file(const std::string& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error) return Error{ErrorCode::kIo, path + ": " + error.message()};
  EMBER_ASSIGN(const std::string bytes, read_file(path, size));
  EMBER_ASSIGN(const Header header, decode_header(path, bytes));
  const std::string_view parts = std::string_view(bytes).substr(header.bytes);
  if (header.parts.empty() || checksum64(as_bytes(parts)) != header.parts_checksum) {
    return Error{ErrorCode::kCorruption, path + ": what it keeps is damaged since"};
  }
  QuarantineEntry entry;
  entry.hash = header.row.hash;
  entry.position = header.row.position;
  entry.tail = header.row.tail;
  entry.reason = header.row.reason;
  ByteReader reader(parts);
  for (size_t i = 0; i < header.parts.size(); ++i) {
    std::optional<std::string> part;
    if (header.parts[i] != kUnread) part = std::string(reader.read_bytes(header.parts[i]));
    if (i == 0) {
      entry.found.record = part.value_or("");
    } else {
      entry.found.groups.push_back(std::move(part));
    }
  }
  if (!reader.finished()) {
    return Error{ErrorCode::kCorruption, path + ": its parts do not add up to its length"};
  }
  return entry;
}

}  // namespace ember
