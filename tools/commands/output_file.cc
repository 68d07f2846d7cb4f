// A file under another name until it is whole, and standard output.
#include "tools/commands/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace ember {
namespace {

Error system_trouble(const std::string& path, const char* what) {
  const int code = errno;
  const bool full = code == ENOSPC || code == EDQUOT;
  return {full ? ErrorCode::kCapacity : ErrorCode::kIo,
          path + ": " + what + ": " + std::strerror(code)};
}

Error stopped() { return {ErrorCode::kCancelled, "stopped before all was written"}; }

class StandardOutput final : public OutputFile {
 public:
  explicit StandardOutput(CommandIo& io) : io_(io) {}
  Status write(std::string_view bytes) override {
    if (io_.stopped()) return stopped();
    io_.out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return io_.out.good() ? Status() : failed();
  }
  Status finish() override { return io_.out.flush().good() ? Status() : failed(); }

 private:
  static Status failed() { return {ErrorCode::kIo, "standard output cannot be written"}; }
  CommandIo& io_;
};

class NamedFile final : public OutputFile {
 public:
  NamedFile(std::string path, int fd, CommandIo& io)
      : path_(std::move(path)), unfinished_(path_ + ".unfinished"), fd_(fd), io_(io) {}
  ~NamedFile() override {
    ::close(fd_);
    if (!renamed_) ::unlink(unfinished_.c_str());
  }

  Status write(std::string_view bytes) override {
    if (io_.stopped()) return stopped();
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_trouble(unfinished_, "cannot be written");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return {};
  }

  Status finish() override {
    if (::fsync(fd_) != 0) return system_trouble(unfinished_, "cannot be synced");
    // Unlike a rename, a link never takes the place of a file that came meanwhile; but not every
    // file system has them.
    if (::link(unfinished_.c_str(), path_.c_str()) == 0) return {};
    if (errno == EEXIST) return system_trouble(path_, "cannot be named");
    if (::rename(unfinished_.c_str(), path_.c_str()) != 0) {
      return system_trouble(path_, "cannot be named");
    }
    renamed_ = true;
    return {};
  }

 private:
  const std::string path_;
  const std::string unfinished_;
  const int fd_;
  bool renamed_ = false;
  CommandIo& io_;
};

}  // namespace

Result<std::unique_ptr<OutputFile>> OutputFile::open(const std::string& path, CommandIo& io) {
  if (path == "-") {
    if (io.colour) {
      return Error{ErrorCode::kInvalidArgument,
                   "-: standard output is a terminal, expected a pipe or a file"};
    }
    return std::unique_ptr<OutputFile>(std::make_unique<StandardOutput>(io));
  }
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return Error{ErrorCode::kInvalidArgument, path + ": is there already"};
  }
  const std::string unfinished = path + ".unfinished";
  const int fd =
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return system_trouble(unfinished, "cannot be made");
  return std::unique_ptr<OutputFile>(std::make_unique<NamedFile>(path, fd, io));
}

}  // namespace ember
