// Ballast: making and giving up the file.
#include "store/disk/ballast.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace ember {

Ballast::Ballast(const std::string& directory, uint64_t bytes, FileLedger& ledger)
    : path_((std::filesystem::path(directory) / kBallastName).lexically_normal().string()),
      bytes_(bytes),
      ledger_(ledger) {}

uint64_t Ballast::held_bytes() const { return ledger_.size_of(path_) >= bytes_ ? bytes_ : 0; }

void Ballast::shorten() {
  if (bytes_ == 0 || ledger_.size_of(path_) <= bytes_) return;
  if (::truncate(path_.c_str(), static_cast<off_t>(bytes_)) == 0) ledger_.set(path_, bytes_);
}

Status Ballast::make() {
  if (missing_bytes() == 0) return {};
  static_cast<void>(release());  // of another size
  if (!ledger_.grow(path_, bytes_)) {
    return {ErrorCode::kCapacity, path_ + ": " + std::to_string(bytes_) +
                                      " bytes do not fit within the limit of its folder"};
  }
  const int file = ::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  int error = file < 0 ? errno : ::posix_fallocate(file, 0, static_cast<off_t>(bytes_));
  // Whatever the umask.
  if (file >= 0 && error == 0 && ::fchmod(file, 0600) != 0) error = errno;
  if (file >= 0 && error == 0 && ::fsync(file) != 0) error = errno;
  if (file >= 0) ::close(file);
  if (error == 0) return {};
  static_cast<void>(release());
  const bool full = error == ENOSPC || error == EDQUOT;
  return {full ? ErrorCode::kCapacity : ErrorCode::kIo,
          path_ + ": cannot be made: " + std::strerror(error)};
}

uint64_t Ballast::release() {
  const uint64_t held = ledger_.size_of(path_);
  // A file that cannot be removed keeps its blocks and stays counted.
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) return 0;
  ledger_.remove(path_);
  return held;
}

}  // namespace ember
