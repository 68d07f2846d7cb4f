// The command's side: connects, asks, and carries bytes between the frames and its own streams.
#include "service/holder/holder_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "service/holder/holder_socket.h"

namespace ember {
namespace {

constexpr int kConnectPauseUs = 10'000;
constexpr int kStopLookMs = 100;
constexpr int64_t kSendPatienceUs = 60'000'000;

// errno of the connection, 0 for success. A full backlog is waited for.
int connect_within(const SocketAddress& address, const Descriptor& socket, int64_t deadline_us) {
  while (true) {
    const int error = address.connect(socket);
    if (error != EAGAIN || system_clock().now_us() >= deadline_us) return error;
    ::usleep(kConnectPauseUs);
  }
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {
      pollfd poll{fd, POLLOUT, 0};
      ::poll(&poll, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

class HolderClientImpl final : public HolderClient {
 public:
  HolderClientImpl(std::string path, Descriptor socket)
      : path_(std::move(path)), socket_(std::move(socket)) {}

  Status greet(int64_t patience_us);
  const HolderGreeting& greeting() const override { return greeting_; }
  Result<int> run(const HolderRequest& request, const ClientStreams& streams) override;

 private:
  std::string holder() const {
    return "the process that holds the store (pid " + std::to_string(greeting_.pid) + ")";
  }
  Error ended() const {
    return {heard_ ? ErrorCode::kIo : ErrorCode::kBusy, holder() + " ended before the command did"};
  }
  Status send_input(int in);
  void wait_for_frame(const ClientStreams& streams);

  std::string path_;
  Descriptor socket_;
  HolderGreeting greeting_;
  bool heard_ = false;  // of the command
};

Status HolderClientImpl::greet(int64_t patience_us) {
  const Peer peer = peer_of(socket_);
  if (!peer.trusted) return {ErrorCode::kIo, path_ + ": another user's process answers there"};
  greeting_.pid = peer.pid;
  const Result<Frame> frame = read_frame(socket_, {patience_us, patience_us});
  if (!frame.ok() && frame.error().code == ErrorCode::kBusy) {
    return {ErrorCode::kBusy, holder() + " does not answer"};
  }
  if (!frame.ok() && frame.error().code == ErrorCode::kCancelled) {
    return {ErrorCode::kBusy, holder() + " is just ending"};
  }
  if (!frame.ok() || frame->type != FrameType::kGreeting) {
    return {ErrorCode::kIo, path_ + ": what answers there is no holder of a store"};
  }
  const Result<HolderGreeting> greeting = decode_greeting(frame->body);
  if (!greeting.ok()) {
    return {ErrorCode::kIo, path_ + ": what answers there is no holder of a store"};
  }
  greeting_ = *greeting;
  if (greeting_.protocol != kHolderProtocolVersion) {
    return {ErrorCode::kUnsupported,
            holder() + " is emberkv " + greeting_.program + ", whose socket speaks version " +
                std::to_string(greeting_.protocol) + "; this program speaks version " +
                std::to_string(kHolderProtocolVersion)};
  }
  if (greeting_.busy) {
    return {ErrorCode::kBusy, holder() + " serves as many commands as it may; try again"};
  }
  return {};
}

// One frame of input, or its end; tells at once when the holder is gone meanwhile.
Status HolderClientImpl::send_input(int in) {
  std::string body(kMostFrameBytes, '\0');
  while (true) {
    pollfd polls[] = {{in, POLLIN, 0}, {socket_.fd(), POLLRDHUP, 0}};
    if (::poll(polls, 2, -1) < 0 && errno != EINTR) return ended();
    if (polls[1].revents != 0) return ended();
    if (polls[0].revents == 0) continue;
    const ssize_t got = ::read(in, body.data(), body.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    body.resize(got > 0 ? static_cast<size_t>(got) : 0);
    const FrameType type = got > 0 ? FrameType::kIn : FrameType::kInEnd;
    return write_frame(socket_, type, body, kSendPatienceUs).ok() ? Status() : ended();
  }
}

// The holder stops a command whose client sends no more, as it would one whose client is gone.
void HolderClientImpl::wait_for_frame(const ClientStreams& streams) {
  while (streams.stopped) {
    pollfd poll{socket_.fd(), POLLIN, 0};
    if (::poll(&poll, 1, kStopLookMs) > 0) return;
    if (streams.stopped()) ::shutdown(socket_.fd(), SHUT_WR);
  }
}

Result<int> HolderClientImpl::run(const HolderRequest& request, const ClientStreams& streams) {
  EMBER_ASSIGN(const std::string body, encode_request(request));
  if (!write_frame(socket_, FrameType::kRequest, body, kSendPatienceUs).ok()) return ended();
  while (true) {
    wait_for_frame(streams);
    const Result<Frame> frame = read_frame(socket_, {kForever, kSendPatienceUs});
    if (!frame.ok()) return ended();
    heard_ = true;
    switch (frame->type) {
      case FrameType::kOut:
        if (write_all(streams.out, frame->body)) break;
        return Error{ErrorCode::kIo, "standard output cannot be written"};
      case FrameType::kErr:
        // As in a command of one's own: an error that cannot be shown stops nothing.
        static_cast<void>(write_all(streams.err, frame->body));
        break;
      case FrameType::kAskIn:
        EMBER_TRY(send_input(streams.in));
        break;
      case FrameType::kExit:
        return decode_exit(frame->body);
      default:
        return Error{ErrorCode::kCorruption,
                     holder() + " sent " + std::string(frame_type_name(frame->type)) +
                         ", expected output or the command's end"};
    }
  }
}

}  // namespace

Result<std::unique_ptr<HolderClient>> HolderClient::connect(const std::string& folder,
                                                            int64_t patience_us) {
  const int64_t deadline_us = system_clock().now_us() + patience_us;
  const Result<SocketAddress> address = SocketAddress::in_folder(folder);
  if (!address.ok()) return std::unique_ptr<HolderClient>();
  EMBER_ASSIGN(Descriptor socket, make_unix_socket());
  const int error = connect_within(*address, socket, deadline_us);
  if (error == ENOENT || error == ECONNREFUSED || error == ENOTSOCK) {
    return std::unique_ptr<HolderClient>();
  }
  if (error == EAGAIN) {
    return Error{ErrorCode::kBusy, address->path() + ": its process does not answer"};
  }
  if (error != 0) return Error{ErrorCode::kIo, address->path() + ": " + std::strerror(error)};
  auto client = std::make_unique<HolderClientImpl>(address->path(), std::move(socket));
  EMBER_TRY(client->greet(patience_us));
  return std::unique_ptr<HolderClient>(std::move(client));
}

}  // namespace ember
