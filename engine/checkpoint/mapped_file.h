// Mapped file: a file's bytes in memory, read-only, and what the system says of the file itself.
//
// Journey    file -> [mapped_file] -> safetensors, fingerprint
// Owns       the mapping; closed with the object
// Invariant  the identity is that of the bytes mapped, even when the name is given to another file
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace ember {

class MappedFile {
 public:
  // Errors: kIo with the path and the system's reason.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  ConstBytes bytes() const { return {data_, size_}; }
  uint64_t inode() const { return inode_; }
  int64_t modified_ns() const { return modified_ns_; }
  int64_t changed_ns() const { return changed_ns_; }

 private:
  MappedFile() = default;

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  uint64_t inode_ = 0;
  int64_t modified_ns_ = 0;
  int64_t changed_ns_ = 0;
};

}  // namespace ember
