// Quarantine: records that were proven wrong, kept aside as they were found, for whoever asks why.
//
// Journey    disk_tier, conversations -> [quarantine] -> `emberkv verify`, a person
// Owns       the files in <store>/quarantine, 0600 in a folder 0700
// Invariant  never more than its share of bytes and of files, the oldest go first; nothing here is
//            ever served; a damaged file of its own harms nothing. What it keeps are the bytes as
//            they were read: with encryption at rest the sealed ones, never what was deciphered
// Threads    any
// Not here   what proves a record wrong (store/cache/block_coder.h), what heals it (commit)
//
//   quarantine file       bytes
//     magic "EMBQ"            4
//     format version          2   kQuarantineVersion
//     flags                   2   bit 0: tail record; bit 1: groups were left out for their size
//     found at                8   microseconds since 1970
//     block hash             16
//     position                4   of the block in its chain
//     reason length r         2   at most kMostReasonBytes
//     part count p            2   the metadata value first, then the groups' payloads
//     parts                 4 p   bytes of each; 0xffffffff: could not be read
//     reason                  r
//     XXH3-64 of the parts    8
//     XXH3-64 of all before   8
//     the parts, one after the other
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "prefix_index/block_hash.h"

namespace ember {

inline constexpr uint32_t kQuarantineMagic = 0x51424d45;  // "EMBQ"
inline constexpr uint16_t kQuarantineVersion = 1;
inline constexpr size_t kMostReasonBytes = 512;
inline constexpr size_t kMostQuarantineFiles = 1024;

// A record as it lies in the store, right or wrong: neither decoded nor deciphered nor proven.
struct FoundRecord {
  std::string record;                              // the metadata value; empty: cannot be read
  std::vector<std::optional<std::string>> groups;  // payloads; nothing: cannot be read
};

struct QuarantineEntry {
  BlockHash hash;
  uint32_t position = 0;
  bool tail = false;
  std::string reason;  // one line, of hashes and numbers only: nothing of a prompt
  FoundRecord found;
};

struct QuarantineRow {
  std::string file;
  uint64_t bytes = 0;  // of the file
  // Of its header; all empty but the reason where the file itself is damaged.
  BlockHash hash;
  uint32_t position = 0;
  bool tail = false;
  int64_t unix_us = 0;
  std::string reason;
};

struct QuarantineStats {
  uint64_t records = 0;      // kept now
  uint64_t bytes = 0;        // of their files
  uint64_t limit_bytes = 0;
  uint64_t kept = 0;         // since opening
  uint64_t dropped = 0;      // since opening: the oldest, to make room
  uint64_t refused = 0;      // since opening: too large, or the disk would not take them
};

class Quarantine {
 public:
  // The folder is made with the first record. `read_only`: lists, and refuses to keep.
  static std::unique_ptr<Quarantine> open(const std::string& directory, uint64_t limit_bytes,
                                          bool read_only = false);
  virtual ~Quarantine() = default;

  // Keeps a record, once: the same bytes of the same block are not kept again. Errors: kCapacity
  // (larger than the whole share), kIo, kUnsupported (read only).
  virtual Status keep(const QuarantineEntry& entry, int64_t unix_us) = 0;
  // Removes one file that list() names, for good. False: there is none. Errors: kIo; kUnsupported
  // (read only).
  virtual Result<bool> remove(const std::string& file) = 0;
  // Oldest first. Cost: reads every header.
  virtual std::vector<QuarantineRow> list() const = 0;
  virtual QuarantineStats stats() const = 0;
};

// The whole of one file. Errors: kCorruption, kUnsupported (another version), kIo.
Result<QuarantineEntry> read_quarantine_file(const std::string& path);

}  // namespace ember
