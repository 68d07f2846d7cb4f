// Holder socket: a Unix socket in the store's folder, and whole frames over it in bounded time.
//
// Journey    holder_server, holder_client -> [holder_socket] -> each other
// Owns       its file descriptor
// Invariant  no call waits past its deadline, a peer that stops in the middle of a frame included
// Threads    one reads, one writes; hang_up() from any
// Not here   what a frame means (holder_frames.h)
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "service/holder/holder_frames.h"

namespace ember {

inline constexpr const char* kHolderSocketName = "holder.sock";
inline constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Where the socket of a folder is bound and found: a path of any length, through the folder's own
// descriptor where it is longer than a socket's address may be.
class SocketAddress {
 public:
  // Errors: kIo (the folder cannot be opened).
  static Result<SocketAddress> in_folder(const std::string& folder);
  const std::string& path() const { return path_; }  // as users know it
  // errno, 0 for success.
  int bind(const Descriptor& socket) const;
  int connect(const Descriptor& socket) const;

 private:
  std::string path_;
  std::string short_path_;
  Descriptor folder_;
};

// A stream socket that never blocks. Errors: kIo.
Result<Descriptor> make_unix_socket();

struct Peer {
  uint32_t pid = 0;
  bool trusted = false;  // runs as this user or as root, or this process is root's
};
Peer peer_of(const Descriptor& socket);

struct Frame {
  FrameType type = FrameType::kGreeting;
  std::string body;
};

// How long a frame may take: to begin, and from its beginning to its end.
struct FramePatience {
  int64_t begin_us = 0;  // kForever: as long as the peer lives
  int64_t whole_us = 0;
};

// Errors: kCancelled (the peer is gone), kBusy (it took too long), kCorruption.
Result<Frame> read_frame(const Descriptor& socket, const FramePatience& patience);
// Waits while the peer does not read. Errors: kCancelled, kBusy.
Status write_frame(const Descriptor& socket, FrameType type, std::string_view body,
                   int64_t patience_us);
// Without waiting: the peer has closed its end, or this end was hung up.
bool peer_is_gone(const Descriptor& socket);
// Ends what waits on the socket, on both ends.
void hang_up(const Descriptor& socket);

}  // namespace ember
