// The holder's side: binds, accepts, and gives each connection a thread and a command.
#include "service/holder/holder_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <list>
#include <system_error>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "service/holder/holder_socket.h"

namespace ember {
namespace {

constexpr int kBacklog = 16;
constexpr int kAcceptPauseMs = 100;  // where the system has no descriptor left for a connection

class HolderServerImpl final : public HolderServer {
 public:
  HolderServerImpl(HolderServerOptions options, HolderHandler handler)
      : options_(std::move(options)), handler_(std::move(handler)) {}
  ~HolderServerImpl() override { HolderServerImpl::stop(); }

  Status open();
  void stop() override;
  HolderServerStats stats() const override {
    const MutexLock lock(mutex_);
    HolderServerStats stats = stats_;
    for (const Connection& connection : connections_) stats.open += connection.done ? 0u : 1u;
    return stats;
  }

 private:
  struct Connection {
    Descriptor socket;
    std::thread thread;
    std::atomic<bool> done{false};
  };

  Status remove_stale(const SocketAddress& address) const;
  void accept_loop();
  void accept_one();
  void serve(Connection& connection);
  int run(const HolderRequest& request, HolderStreams& streams) const;
  // The buffer of a new connection takes it whole; one that does not is not worth a wait.
  void greet_busy(const Descriptor& socket) const {
    static_cast<void>(
        write_frame(socket, FrameType::kGreeting, encode_greeting(greeting(true)), 0));
  }
  void count(uint64_t HolderServerStats::*counter) {
    const MutexLock lock(mutex_);
    ++(stats_.*counter);
  }
  HolderGreeting greeting(bool busy) const {
    return {kHolderProtocolVersion, busy, static_cast<uint32_t>(::getpid()), options_.program};
  }

  HolderServerOptions options_;
  HolderHandler handler_;
  std::string path_;
  std::string bound_path_;
  struct stat bound_ {};
  Descriptor listener_;
  Descriptor wake_;
  std::atomic<bool> ending_{false};
  std::thread acceptor_;
  mutable Mutex mutex_;
  std::list<Connection> connections_ EMBER_GUARDED_BY(mutex_);
  HolderServerStats stats_ EMBER_GUARDED_BY(mutex_);
};

Status io_error(const std::string& path, int error) {
  return {ErrorCode::kIo, path + ": " + std::strerror(error)};
}

// The store's own lock is the caller's, so a socket is here because its holder was killed; one that
// answers all the same is left alone.
Status HolderServerImpl::remove_stale(const SocketAddress& address) const {
  struct stat found {};
  if (::lstat(path_.c_str(), &found) != 0) {
    return errno == ENOENT ? Status() : io_error(path_, errno);
  }
  if (!S_ISSOCK(found.st_mode)) {
    return {ErrorCode::kIo, path_ + ": found a file that is no socket, expected none"};
  }
  EMBER_ASSIGN(const Descriptor probe, make_unix_socket());
  const int error = address.connect(probe);
  if (error == 0 || error == EAGAIN) {
    return {ErrorCode::kBusy, path_ + ": another process (pid " +
                                  std::to_string(peer_of(probe).pid) + ") answers there"};
  }
  return ::unlink(path_.c_str()) == 0 || errno == ENOENT ? Status() : io_error(path_, errno);
}

Status HolderServerImpl::open() {
  EMBER_ASSIGN(const SocketAddress address, SocketAddress::in_folder(options_.folder));
  path_ = address.path();
  EMBER_TRY(remove_stale(address));
  EMBER_ASSIGN(listener_, make_unix_socket());
  // Before it is bound: there is no moment at which others could reach it.
  if (::fchmod(listener_.fd(), S_IRUSR | S_IWUSR) != 0) return io_error(path_, errno);
  if (const int error = address.bind(listener_); error != 0) return io_error(path_, error);
  if (::lstat(path_.c_str(), &bound_) != 0) return io_error(path_, errno);
  bound_path_ = path_;
  if (::listen(listener_.fd(), kBacklog) != 0) return io_error(path_, errno);
  wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.open()) return io_error("eventfd", errno);
  try {
    acceptor_ = std::thread([this] { accept_loop(); });
  } catch (const std::system_error& error) {
    return {ErrorCode::kCapacity, "no thread can be started: " + std::string(error.what())};
  }
  return {};
}

void HolderServerImpl::stop() {
  if (!ending_.exchange(true)) {
    if (acceptor_.joinable()) {
      const uint64_t one = 1;
      static_cast<void>(::write(wake_.fd(), &one, sizeof one));
      acceptor_.join();
    }
    struct stat found {};
    const bool ours = !bound_path_.empty() && ::lstat(bound_path_.c_str(), &found) == 0 &&
                      found.st_ino == bound_.st_ino && found.st_dev == bound_.st_dev;
    if (ours) ::unlink(bound_path_.c_str());
    listener_ = Descriptor();
  }
  std::list<Connection> last;
  {
    const MutexLock lock(mutex_);
    for (const Connection& connection : connections_) hang_up(connection.socket);
    last.splice(last.end(), connections_);
  }
  for (Connection& connection : last) connection.thread.join();
}

void HolderServerImpl::accept_loop() {
  while (!ending_) {
    pollfd polls[] = {{listener_.fd(), POLLIN, 0}, {wake_.fd(), POLLIN, 0}};
    if (::poll(polls, 2, -1) < 0 && errno != EINTR) return;
    if (!ending_ && (polls[0].revents & POLLIN) != 0) accept_one();
  }
}

void HolderServerImpl::accept_one() {
  Descriptor socket(
      ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.open()) {
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    pollfd wake{wake_.fd(), POLLIN, 0};
    ::poll(&wake, 1, kAcceptPauseMs);
    return;
  }
  if (!peer_of(socket).trusted) return count(&HolderServerStats::refused);
  const MutexLock lock(mutex_);
  for (auto it = connections_.begin(); it != connections_.end();) {
    if (!it->done) {
      ++it;
      continue;
    }
    it->thread.join();
    it = connections_.erase(it);
  }
  if (connections_.size() >= options_.most_connections) {
    ++stats_.busy;
    return greet_busy(socket);
  }
  Connection& connection = connections_.emplace_back();
  connection.socket = std::move(socket);
  try {
    connection.thread = std::thread([this, &connection] {
      serve(connection);
      hang_up(connection.socket);
      connection.done = true;
    });
  } catch (const std::system_error&) {
    // No thread is left for it: as for one connection too many.
    ++stats_.busy;
    greet_busy(connection.socket);
    connections_.pop_back();
  }
}

void HolderServerImpl::serve(Connection& connection) {
  const Descriptor& socket = connection.socket;
  const int64_t patience_us = options_.frame_patience_us;
  if (!write_frame(socket, FrameType::kGreeting, encode_greeting(greeting(false)), patience_us)
           .ok()) {
    return count(&HolderServerStats::refused);
  }
  const Result<Frame> frame = read_frame(socket, {patience_us, patience_us});
  if (!frame.ok() || frame->type != FrameType::kRequest) {
    return count(&HolderServerStats::refused);
  }
  const Result<HolderRequest> request = decode_request(frame->body);
  if (!request.ok()) return count(&HolderServerStats::refused);
  count(&HolderServerStats::served);
  const std::unique_ptr<HolderStreams> streams =
      make_holder_streams(socket, {patience_us, options_.output_patience_us}, ending_);
  const int code = run(*request, *streams);
  if (ending_) return;  // it may have been cut short: its client must not take it for done
  streams->out().flush();
  streams->err().flush();
  static_cast<void>(write_frame(socket, FrameType::kExit, encode_exit(code), patience_us));
}

int HolderServerImpl::run(const HolderRequest& request, HolderStreams& streams) const {
  try {
    return handler_(request, streams);
  } catch (const std::exception& error) {
    streams.err() << "emberkv: " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace

Result<std::unique_ptr<HolderServer>> HolderServer::start(const HolderServerOptions& options,
                                                          HolderHandler handler) {
  auto server = std::make_unique<HolderServerImpl>(options, std::move(handler));
  EMBER_TRY(server->open());
  return std::unique_ptr<HolderServer>(std::move(server));
}

}  // namespace ember
