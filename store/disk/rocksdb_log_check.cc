// RocksDB log check: walks the records of a log file and proves each.
#include "store/disk/rocksdb_log_check.h"

#include <algorithm>

#include "base/bytes.h"
#include "store/disk/fast_crc32c.h"
#include "store/disk/private_file.h"

namespace ember {
namespace {

constexpr size_t kBlockBytes = 32768;
constexpr size_t kHeaderBytes = 7;
constexpr uint32_t kMaskDelta = 0xa282ead8u;
constexpr uint8_t kLastRecordType = 4;  // full, first, middle, last; 0 is padding
constexpr uint8_t kFull = 1, kFirst = 2, kLast = 4;
constexpr size_t kSector = 512;
// What a manifest's group of records that are synced together may come to.
constexpr size_t kMostUnsyncedEdits = 8192;

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c_extend(0, bytes.data(), bytes.size());
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

// Whether a record with a payload of `length` bytes and a right checksum begins `bytes`.
bool proven(std::string_view bytes, size_t length) {
  if (bytes.size() < kHeaderBytes + length) return false;
  auto type = static_cast<uint8_t>(bytes[6]);
  if (type == 0 || type > kLastRecordType) return false;
  return load_unaligned<uint32_t>(bytes.data()) == masked_crc(bytes.substr(6, 1 + length));
}

size_t length_of(std::string_view record) {
  return load_unaligned<uint16_t>(record.data() + 4);
}

// Where a right record begins behind the first byte; npos: nowhere. `starts`: only one that begins
// a write, no later part of a long one.
size_t find_proven_record(std::string_view bytes, bool starts) {
  for (size_t at = 1; at + kHeaderBytes <= bytes.size(); ++at) {
    std::string_view rest = bytes.substr(at);
    size_t length = length_of(rest);
    auto type = static_cast<uint8_t>(rest[6]);
    if (starts && type != kFull && type != kFirst) continue;
    if (length > 0 && proven(rest, length)) return at;
  }
  return std::string_view::npos;
}

bool all_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

// Whether [from, to) reaches into a sector in which nothing was written, from `from` on.
bool has_empty_sector(std::string_view bytes, size_t from, size_t to) {
  to = std::min(to, bytes.size());
  while (from < to) {
    // To the sector's end, where what was to follow is lost as well: a few zeros at a record's end
    // are payload.
    size_t end = std::min(bytes.size(), (from / kSector + 1) * kSector);
    if (all_zero(bytes.substr(from, end - from))) return true;
    from = end;
  }
  return false;
}

class LogWalk {
 public:
  LogWalk(std::string_view bytes, LogKind kind) : bytes_(bytes), kind_(kind) {}

  LogVerdict run() {
    while (at_ < bytes_.size()) {
      size_t block_end = std::min(bytes_.size(), (at_ / kBlockBytes + 1) * kBlockBytes);
      std::string_view rest = bytes_.substr(at_, block_end - at_);
      bool last = block_end == bytes_.size();
      if (rest.size() < kHeaderBytes) {
        // A block's trailer; at the end of the file the beginning of a header.
        if (!last && !all_zero(rest)) return judge(block_end);
        at_ = block_end;
        continue;
      }
      size_t length = length_of(rest);
      if (kHeaderBytes + length > rest.size()) {
        if (last && cut_short(rest)) return {LogVerdict::kWhole, write_};
        return judge(block_end);
      }
      if (all_zero(rest) && last) return {LogVerdict::kWhole, write_};
      if (!proven(rest, length)) return judge(at_ + kHeaderBytes + length);
      step(rest, length);
    }
    return {LogVerdict::kWhole, write_};
  }

 private:
  void step(std::string_view rest, size_t length) {
    auto type = static_cast<uint8_t>(rest[6]);
    at_ += kHeaderBytes + length;
    if (type == kFull || type == kLast) write_ = at_;
  }

  // `rest` begins with a record that reaches past the end of the file. Cut short by a kill, or a
  // changed length? Changed, if the record is right with what there is, or if a right one follows.
  static bool cut_short(std::string_view rest) {
    if (proven(rest, rest.size() - kHeaderBytes)) return false;
    return find_proven_record(rest, false) == std::string_view::npos;
  }

  // The record at at_ is wrong; as far as can be seen it ends at `end`.
  LogVerdict judge(size_t end) const {
    LogVerdict damaged{LogVerdict::kDamaged, write_};
    // A header that was never written says nothing of where its record ends.
    if (all_zero(bytes_.substr(at_, kHeaderBytes))) end = at_ + kHeaderBytes;
    bool empty_from_here = has_empty_sector(bytes_, at_, at_ / kSector * kSector + kSector);
    if (!empty_from_here && !has_empty_sector(bytes_, at_, end)) return damaged;
    bool followed = find_proven_record(bytes_.substr(at_), true) != std::string_view::npos;
    if (!followed) return {LogVerdict::kTorn, write_};
    bool few = kind_ == LogKind::kManifest && bytes_.size() - write_ <= kMostUnsyncedEdits;
    return few ? LogVerdict{LogVerdict::kTorn, write_} : damaged;
  }

  std::string_view bytes_;
  LogKind kind_;
  size_t at_ = 0;
  size_t write_ = 0;  // the end of the last whole write
};

}  // namespace

LogVerdict check_log(std::string_view bytes, LogKind kind) { return LogWalk(bytes, kind).run(); }

void each_log_record(std::string_view bytes,
                     const std::function<void(std::string_view record)>& visit) {
  std::string whole;
  bool in_midst = false;
  size_t at = 0;
  while (at + kHeaderBytes <= bytes.size()) {
    const size_t left = kBlockBytes - at % kBlockBytes;
    if (left < kHeaderBytes) {
      at += left;
      continue;
    }
    const std::string_view rest = bytes.substr(at, std::min(left, bytes.size() - at));
    const size_t length = length_of(rest);
    const auto type = static_cast<uint8_t>(rest[6]);
    if (kHeaderBytes + length > rest.size() || !proven(rest, length)) {
      in_midst = false;
      const size_t next = find_proven_record(bytes.substr(at), true);
      if (next == std::string_view::npos) return;
      at += next;
      continue;
    }
    const std::string_view part = rest.substr(kHeaderBytes, length);
    at += kHeaderBytes + length;
    const bool begins = type == kFull || type == kFirst;
    if (begins) whole.clear();
    in_midst = begins || in_midst;
    if (!in_midst) continue;
    whole += part;
    if (type == kFull || type == kLast) {
      visit(whole);
      in_midst = false;
    }
  }
}

LogKind log_kind(std::string_view name) {
  return name.starts_with("MANIFEST-") ? LogKind::kManifest : LogKind::kLog;
}

bool log_file_is_whole(const std::string& path) {
  const Result<std::string> bytes = read_small_file(path, SIZE_MAX);
  if (!bytes.ok()) return false;
  size_t name = path.rfind('/') + 1;
  return check_log(*bytes, log_kind(path.substr(name))).state != LogVerdict::kDamaged;
}

}  // namespace ember
