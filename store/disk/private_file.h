// Private file: what the parts of a store that are ours alone need of the system: descriptors,
// errors, private folders, and a look at who else may come in.
//
// Journey    store_directory, vault, key_file -> [private_file] -> the file system
// Invariant  folders are 0700 whatever the umask
// Threads    any
// Not here   writing a file so that a crash leaves it whole (store/disk/durable_file.h)
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ember {

class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// "PATH: WHAT: the system's text"; kCapacity for a full disk, else kIo.
Error system_error(const std::string& path, const char* what, int code);

// The file's bytes; more than `most_bytes` of them mean that it is longer than it may be.
// Errors: kIo (cannot be opened), kCorruption.
Result<std::string> read_small_file(const std::string& path, size_t most_bytes);
// Makes a folder and its missing parents, 0700; adds those it made to `made`, outermost first. An
// error says that `what` cannot be made there.
Status make_folders(const std::filesystem::path& path, const char* what,
                    std::vector<std::filesystem::path>& made);

// Why others than the owner may see what lies at `path` or below it; empty: nobody else may.
std::string open_to_others(const std::string& path);

}  // namespace ember
