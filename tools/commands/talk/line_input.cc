// Line input: a stream buffer that waits for a descriptor or for its interruption.
#include "tools/commands/talk/line_input.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <streambuf>

#include "base/check.h"

namespace ember {
namespace {

class LineInputImpl final : public LineInput, private std::streambuf {
 public:
  explicit LineInputImpl(int fd)
      : fd_(fd), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), stream_(this) {
    EMBER_CHECK(wake_ >= 0, "a descriptor is left for an event");
  }
  ~LineInputImpl() override { ::close(wake_); }

  std::istream& stream() override { return stream_; }
  void interrupt() override {
    const uint64_t one = 1;
    static_cast<void>(::write(wake_, &one, sizeof one));
  }

 protected:
  int_type underflow() override {
    while (true) {
      pollfd polls[] = {{wake_, POLLIN, 0}, {fd_, POLLIN, 0}};
      if (::poll(polls, 2, -1) < 0 && errno != EINTR) break;
      if (polls[0].revents != 0) break;
      if (polls[1].revents == 0) continue;
      const ssize_t got = ::read(fd_, buffer_.data(), buffer_.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) break;
      setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
      return traits_type::to_int_type(buffer_.front());
    }
    return traits_type::eof();
  }

 private:
  int fd_;
  int wake_;
  std::array<char, 16384> buffer_{};
  std::istream stream_;
};

}  // namespace

std::unique_ptr<LineInput> make_line_input(int fd) {
  return std::make_unique<LineInputImpl>(fd);
}

}  // namespace ember
