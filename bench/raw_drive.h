// Raw drive: what the drive under a folder does at most, past the page cache.
//
// Journey    none; disk_bench quotes shares of it
// Owns       one file below the folder, removed at the end
// Threads    each call has its own
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace ember {

class RawDrive {
 public:
  // Where O_DIRECT does not work (a tmpfs), the page cache is measured and direct() says so.
  static Result<std::unique_ptr<RawDrive>> open(const std::string& folder, uint64_t bytes);
  ~RawDrive();
  RawDrive(const RawDrive&) = delete;
  RawDrive& operator=(const RawDrive&) = delete;

  bool direct() const { return direct_; }
  // Bytes a second: the file written anew from the front in calls of 4 MiB, synced at the end.
  Result<double> write();
  // Bytes a second: calls of `size` at random places, by so many threads.
  Result<double> read(size_t size, int threads, uint64_t seed);

 private:
  RawDrive(std::string path, uint64_t bytes) : path_(std::move(path)), bytes_(bytes) {}
  std::string path_;
  uint64_t bytes_;
  bool direct_ = false;
};

}  // namespace ember
