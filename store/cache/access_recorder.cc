// Appending to one file, and turning the ring when it is half of the limit.
#include "store/cache/access_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ember {

// The write task's while it runs.
struct AccessRecorder::Files {
  Files(std::string folder_path, uint64_t half)
      : folder(std::move(folder_path)), half_bytes(half) {}
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() { close(); }

  void close() {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  Status failed(const char* what) const {
    return {ErrorCode::kIo, folder + ": " + what + ": " + std::strerror(errno)};
  }
  // Each process begins a file of its own: what an earlier one was writing may be torn.
  Status turn() {
    close();
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return failed("cannot be made");
    const std::string now = folder + "/" + kAccessLogNow;
    if (::rename(now.c_str(), (folder + "/" + kAccessLogBefore).c_str()) != 0 && errno != ENOENT) {
      return failed("cannot be turned");
    }
    struct stat before {};
    if (::stat((folder + "/" + kAccessLogBefore).c_str(), &before) == 0 &&
        static_cast<uint64_t>(before.st_size) > half_bytes) {
      ::unlink((folder + "/" + kAccessLogBefore).c_str());  // of a larger limit
    }
    fd = ::open(now.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return failed("cannot be opened");
    frames = AccessFrames{};
    bytes = 0;
    return append(AccessFrames::header());
  }
  Status append(const std::string& out) {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t written = ::write(fd, out.data() + done, out.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const Status status = failed("cannot be written");
        close();  // a torn frame ends this file
        return status;
      }
      done += static_cast<size_t>(written);
    }
    bytes += out.size();
    return {};
  }
  Status write(const AccessEntry& entry) {
    if (fd < 0) EMBER_TRY(turn());
    std::string frame = frames.encode(entry);
    if (bytes + frame.size() > half_bytes) {
      EMBER_TRY(turn());
      frame = frames.encode(entry);
      if (bytes + frame.size() > half_bytes) return {ErrorCode::kCapacity, folder + ": too long"};
    }
    return append(frame);
  }

  const std::string folder;
  const uint64_t half_bytes;
  int fd = -1;
  uint64_t bytes = 0;
  AccessFrames frames;
};

void AccessRecorder::start(const std::string& store, uint64_t limit_bytes) {
  files_ = std::make_shared<Files>(access_log_folder(store), limit_bytes / 2);
}

void AccessRecorder::add(AccessEntry entry) {
  if (!on()) return;
  if (waiting_.size() >= kMostWaiting) {
    ++dropped_;
    return;
  }
  waiting_.push_back(std::move(entry));
}

void AccessRecorder::advance() {
  if (writing_ || held_ || waiting_.empty()) return;
  writing_ = true;
  auto entries = std::make_shared<std::vector<AccessEntry>>(std::exchange(waiting_, {}));
  auto written = std::make_shared<uint64_t>(0);
  const Ticket ticket =
      device_.run_host(HostLane::kRead, [files = files_, entries, written]() -> Status {
        for (const AccessEntry& entry : *entries) {
          if (files->write(entry).ok()) ++*written;
        }
        return {};
      });
  tickets_.on(ticket, [this, entries, written](const Status&) {
    writing_ = false;
    recorded_ += *written;
    dropped_ += entries->size() - *written;
  });
}

}  // namespace ember
