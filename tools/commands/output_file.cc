// A file without its name until it is whole, and standard output.
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

// Without a name until it is whole; where the file system knows no such files, with another one,
// which nobody else writes to.
class NamedFile final : public OutputFile {
 public:
  NamedFile(std::string path, CommandIo& io)
      : path_(std::move(path)), unfinished_(path_ + ".unfinished"), io_(io) {}
  ~NamedFile() override {
    if (fd_ < 0) return;
    ::close(fd_);
    if (!nameless_ && !renamed_) ::unlink(unfinished_.c_str());
  }

  Status make() {
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    fd_ = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    nameless_ = fd_ >= 0;
    if (nameless_) return {};
    fd_ = ::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd_ >= 0) return {};
    if (errno != EEXIST) return system_trouble(path_, "cannot be made");
    return {ErrorCode::kInvalidArgument,
            unfinished_ + ": is there already: another command writes it, or one was cut short and "
                          "left it: then remove it"};
  }

  Status write(std::string_view bytes) override {
    if (io_.stopped()) return stopped();
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_trouble(path_, "cannot be written");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return {};
  }

  Status finish() override {
    if (::fsync(fd_) != 0) return system_trouble(path_, "cannot be synced");
    // Unlike a rename, a link never takes the place of a file that came meanwhile; but not every
    // file system has them.
    const std::string from = nameless_ ? "/proc/self/fd/" + std::to_string(fd_) : unfinished_;
    const int follow = nameless_ ? AT_SYMLINK_FOLLOW : 0;
    if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path_.c_str(), follow) == 0) return {};
    if (errno == EEXIST || nameless_) return system_trouble(path_, "cannot be named");
    if (::rename(unfinished_.c_str(), path_.c_str()) != 0) {
      return system_trouble(path_, "cannot be named");
    }
    renamed_ = true;
    return {};
  }

 private:
  const std::string path_;
  const std::string unfinished_;
  int fd_ = -1;
  bool nameless_ = false;
  bool renamed_ = false;
  CommandIo& io_;
};

}  // namespace

Result<std::unique_ptr<OutputFile>> OutputFile::open(const std::string& path, CommandIo& io) {
  if (path == "-") {
    if (io.on_terminal) {
      return Error{ErrorCode::kInvalidArgument,
                   "-: standard output is a terminal, expected a pipe or a file"};
    }
    return std::unique_ptr<OutputFile>(std::make_unique<StandardOutput>(io));
  }
  if (path.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the output has no name, expected a file or -"};
  }
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return Error{ErrorCode::kInvalidArgument, path + ": is there already"};
  }
  auto file = std::make_unique<NamedFile>(path, io);
  EMBER_TRY(file->make());
  return std::unique_ptr<OutputFile>(std::move(file));
}

}  // namespace ember
