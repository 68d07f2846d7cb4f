// A regular file, and a pipe with its spool.
#include "tools/commands/transfer/import_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "store/transfer/spool.h"

namespace ember {
namespace {

class RegularFile final : public ImportSource {
 public:
  RegularFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~RegularFile() override { ::close(fd_); }

  ByteSource first() override {
    return [this](char* to, size_t most) -> Result<size_t> {
      while (true) {
        const ssize_t got = ::read(fd_, to, most);
        if (got >= 0) return static_cast<size_t>(got);
        if (errno != EINTR) return failed();
      }
    };
  }
  Result<ByteSource> again() override {
    if (::lseek(fd_, 0, SEEK_SET) != 0) return failed();
    return first();
  }

 private:
  Error failed() const {
    return {ErrorCode::kIo, path_ + ": cannot be read: " + std::strerror(errno)};
  }
  const std::string path_;
  const int fd_;
};

class StandardInput final : public ImportSource {
 public:
  StandardInput(CommandIo& io, std::unique_ptr<Spool> spool)
      : io_(io), spool_(std::move(spool)) {}

  ByteSource first() override {
    return [this](char* to, size_t most) -> Result<size_t> {
      if (io_.stopped()) return Error{ErrorCode::kCancelled, "stopped"};
      io_.in.read(to, static_cast<std::streamsize>(most));
      const auto got = static_cast<size_t>(io_.in.gcount());
      EMBER_TRY(spool_->write({to, got}));
      return got;
    };
  }
  Result<ByteSource> again() override {
    EMBER_TRY(spool_->begin_reading());
    return ByteSource([this](char* to, size_t most) { return spool_->read(to, most); });
  }

 private:
  CommandIo& io_;
  std::unique_ptr<Spool> spool_;
};

}  // namespace

Result<std::unique_ptr<ImportSource>> ImportSource::open(const std::string& file, CommandIo& io,
                                                         const std::string& folder,
                                                         uint64_t most_bytes) {
  if (file == "-") {
    EMBER_ASSIGN(std::unique_ptr<Spool> spool, Spool::make(folder, most_bytes));
    return std::unique_ptr<ImportSource>(std::make_unique<StandardInput>(io, std::move(spool)));
  }
  // Not blocking: what turns out to be a pipe is not waited for.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return Error{ErrorCode::kIo, file + ": cannot be opened: " + std::strerror(errno)};
  }
  auto source = std::make_unique<RegularFile>(file, fd);
  struct stat status = {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kInvalidArgument,
                 file + ": is no regular file; - reads standard input"};
  }
  return std::unique_ptr<ImportSource>(std::move(source));
}

}  // namespace ember
