// Appending to one file, and turning the ring when it is half of the limit.
#include "store/cache/access_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
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
  // Goes on with the file of an earlier process, behind its last whole frame, while there is room.
  Status begin() {
    close();
    const std::string now = folder + "/" + kAccessLogNow;
    std::optional<UnfinishedAccessLog> earlier = AccessFrames::go_on(now);
    if (!earlier || earlier->bytes > half_bytes) return turn();
    fd = ::open(now.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return failed("cannot be opened");
    const auto end = static_cast<off_t>(earlier->bytes);
    if (::ftruncate(fd, end) != 0 || ::lseek(fd, end, SEEK_SET) != end) {
      const Status status = failed("cannot be gone on with");
      close();
      return status;
    }
    frames = std::move(earlier->frames);
    bytes = earlier->bytes;
    drop_larger();
    return {};
  }
  // What was written under a larger limit.
  void drop_larger() const {
    const std::string before = folder + "/" + kAccessLogBefore;
    struct stat info {};
    const bool there = ::stat(before.c_str(), &info) == 0;
    if (there && static_cast<uint64_t>(info.st_size) > half_bytes) ::unlink(before.c_str());
  }
  Status turn() {
    close();
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return failed("cannot be made");
    const std::string now = folder + "/" + kAccessLogNow;
    if (::rename(now.c_str(), (folder + "/" + kAccessLogBefore).c_str()) != 0 && errno != ENOENT) {
      return failed("cannot be turned");
    }
    drop_larger();
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
        close();  // the next one goes on before the torn frame
        return status;
      }
      done += static_cast<size_t>(written);
    }
    bytes += out.size();
    return {};
  }
  Status write(const AccessEntry& entry) {
    if (fd < 0) EMBER_TRY(begin());
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
