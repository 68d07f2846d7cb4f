// Unix sockets with deadlines: addresses, peers, frames.
#include "service/holder/holder_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"

namespace ember {
namespace {

Error peer_gone() { return {ErrorCode::kCancelled, "the other end hung up"}; }

int64_t deadline_after(int64_t patience_us) {
  const int64_t now_us = system_clock().now_us();
  return patience_us > kForever - now_us ? kForever : now_us + patience_us;
}

// Until the socket may be ready; false when the deadline passed.
bool wait_for(const Descriptor& socket, short events, int64_t deadline_us) {
  while (true) {
    const int64_t left_us = deadline_us - system_clock().now_us();
    if (left_us <= 0) return false;
    const int64_t wait_ms = std::min<int64_t>(left_us / 1000 + 1, 1'000'000);
    pollfd poll{socket.fd(), events, 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(wait_ms));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
  }
}

Status read_exactly(const Descriptor& socket, char* to, size_t bytes, int64_t deadline_us) {
  while (bytes > 0) {
    const ssize_t got = ::recv(socket.fd(), to, bytes, 0);
    if (got > 0) {
      to += got;
      bytes -= static_cast<size_t>(got);
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(socket, POLLIN, deadline_us)) {
        return {ErrorCode::kBusy, "the other end did not say anything in time"};
      }
    } else {
      return peer_gone();
    }
  }
  return {};
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kIo, path + ": too long for a socket"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<SocketAddress> SocketAddress::in_folder(const std::string& folder) {
  SocketAddress address;
  address.path_ = folder + "/" + kHolderSocketName;
  address.short_path_ = address.path_;
  address.folder_ = Descriptor(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!address.folder_.open()) return Error{ErrorCode::kIo, folder + ": " + std::strerror(errno)};
  if (!address_of(address.path_).ok()) {
    address.short_path_ =
        "/proc/self/fd/" + std::to_string(address.folder_.fd()) + "/" + kHolderSocketName;
  }
  return address;
}

int SocketAddress::bind(const Descriptor& socket) const {
  const Result<sockaddr_un> address = address_of(short_path_);
  if (!address.ok()) return ENAMETOOLONG;
  const auto* generic = reinterpret_cast<const sockaddr*>(&*address);
  return ::bind(socket.fd(), generic, sizeof *address) == 0 ? 0 : errno;
}

int SocketAddress::connect(const Descriptor& socket) const {
  const Result<sockaddr_un> address = address_of(short_path_);
  if (!address.ok()) return ENAMETOOLONG;
  const auto* generic = reinterpret_cast<const sockaddr*>(&*address);
  return ::connect(socket.fd(), generic, sizeof *address) == 0 ? 0 : errno;
}

Result<Descriptor> make_unix_socket() {
  Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.open()) {
    return Error{ErrorCode::kIo, std::string("a socket cannot be made: ") + std::strerror(errno)};
  }
  return made;
}

Peer peer_of(const Descriptor& socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return {};
  const uid_t own = ::geteuid();
  return {static_cast<uint32_t>(credentials.pid),
          credentials.uid == own || credentials.uid == 0 || own == 0};
}

Result<Frame> read_frame(const Descriptor& socket, const FramePatience& patience) {
  if (!wait_for(socket, POLLIN, deadline_after(patience.begin_us))) {
    return Error{ErrorCode::kBusy, "the other end did not say anything in time"};
  }
  const int64_t deadline_us = deadline_after(patience.whole_us);
  std::string head(kFrameHeadBytes, '\0');
  EMBER_TRY(read_exactly(socket, head.data(), head.size(), deadline_us));
  EMBER_ASSIGN(const FrameHead decoded, decode_frame_head(head));
  Frame frame;
  frame.type = decoded.type;
  frame.body.resize(decoded.body_bytes);
  EMBER_TRY(read_exactly(socket, frame.body.data(), frame.body.size(), deadline_us));
  return frame;
}

Status write_frame(const Descriptor& socket, FrameType type, std::string_view body,
                   int64_t patience_us) {
  const std::string frame = encode_frame(type, body);
  std::string_view rest = frame;
  const int64_t deadline_us = deadline_after(patience_us);
  while (!rest.empty()) {
    const ssize_t sent = ::send(socket.fd(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      rest.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket, POLLOUT, deadline_us)) {
        return {ErrorCode::kBusy, "the other end did not read in time"};
      }
    } else if (errno != EINTR) {
      return peer_gone();
    }
  }
  return {};
}

bool peer_is_gone(const Descriptor& socket) {
  pollfd poll{socket.fd(), POLLRDHUP, 0};
  return ::poll(&poll, 1, 0) != 0;
}

void hang_up(const Descriptor& socket) { ::shutdown(socket.fd(), SHUT_RDWR); }

}  // namespace ember
