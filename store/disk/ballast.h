// Ballast: a file of real blocks that is given up when the drive is full, so that reclaiming, which
// has to write a little before it frees much, can begin.
//
// Journey    none; disk_tier holds it below <store>/blocks
// Owns       the file BALLAST, 0600, counted in the file ledger like every other
// Invariant  the file is whole or it is not there; its blocks are allocated, not only promised
// Threads    write lane (and opening)
// Not here   when it is released and made again (disk_tier_space.cc)
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/disk/limited_file_system.h"

namespace ember {

inline constexpr const char* kBallastName = "BALLAST";

class Ballast {
 public:
  // `bytes` 0: there is none, and none is missed.
  Ballast(const std::string& directory, uint64_t bytes, FileLedger& ledger);

  uint64_t bytes() const { return bytes_; }
  // One that was made for a higher limit becomes as short as this one asks for.
  void shorten();
  // What there is of it on the drive just now: all or nothing.
  uint64_t held_bytes() const;
  uint64_t missing_bytes() const { return bytes_ - held_bytes(); }
  // Errors: kCapacity when neither the limit nor the drive has that much left; kIo.
  Status make();
  // Returns the bytes that came free.
  uint64_t release();

 private:
  std::string path_;
  uint64_t bytes_;
  FileLedger& ledger_;
};

}  // namespace ember
