// Mapped file: open, fstat, mmap; every refusal carries the path and errno's text.
#include "engine/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace ember {
namespace {

Error io_error(const std::string& path, const char* what) {
  return {ErrorCode::kIo, path + ": " + what + ": " + std::generic_category().message(errno)};
}

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_nsec};
}

// Closes the descriptor once the mapping (which outlives it) is made.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return io_error(path, "cannot be opened");
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return io_error(path, "cannot be examined");
  if (!S_ISREG(info.st_mode)) return Error{ErrorCode::kIo, path + ": not a regular file"};

  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  file->size_ = static_cast<size_t>(info.st_size);
  file->inode_ = static_cast<uint64_t>(info.st_ino);
  file->modified_ns_ = nanoseconds(info.st_mtim);
  file->changed_ns_ = nanoseconds(info.st_ctim);
  if (file->size_ > 0) {
    void* data = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (data == MAP_FAILED) return io_error(path, "cannot be mapped");
    file->data_ = static_cast<const std::byte*>(data);
  }
  return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace ember
