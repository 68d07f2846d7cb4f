// Stream buffers that fill and empty frames.
#include "service/holder/holder_streams.h"

#include <array>
#include <functional>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

namespace ember {
namespace {

constexpr size_t kOutputBytes = 32 * 1024;

class FrameOutput final : public std::streambuf {
 public:
  FrameOutput(const Descriptor& socket, FrameType type, int64_t patience_us)
      : socket_(socket), type_(type), patience_us_(patience_us) {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }

 protected:
  int_type overflow(int_type next) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(next, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(next);
      pbump(1);
    }
    return traits_type::not_eof(next);
  }
  int sync() override {
    const std::string_view waiting(pbase(), static_cast<size_t>(pptr() - pbase()));
    if (waiting.empty()) return failed_ ? -1 : 0;
    // A client that once did not read is not waited for again.
    if (!failed_) failed_ = !write_frame(socket_, type_, waiting, patience_us_).ok();
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return failed_ ? -1 : 0;
  }

 private:
  const Descriptor& socket_;
  FrameType type_;
  int64_t patience_us_;
  bool failed_ = false;
  std::array<char, kOutputBytes> buffer_{};
};

class FrameInput final : public std::streambuf {
 public:
  FrameInput(const Descriptor& socket, const StreamPatience& patience)
      : socket_(socket), patience_(patience) {}

 protected:
  int_type underflow() override {
    if (ended_) return traits_type::eof();
    ended_ = true;
    if (!write_frame(socket_, FrameType::kAskIn, {}, patience_.output_us).ok()) {
      return traits_type::eof();
    }
    Result<Frame> frame = read_frame(socket_, {kForever, patience_.frame_us});
    if (!frame.ok() || frame->type != FrameType::kIn || frame->body.empty()) {
      return traits_type::eof();
    }
    ended_ = false;
    body_ = std::move(frame->body);
    setg(body_.data(), body_.data(), body_.data() + body_.size());
    return traits_type::to_int_type(body_.front());
  }

 private:
  const Descriptor& socket_;
  StreamPatience patience_;
  bool ended_ = false;
  std::string body_;
};

class HolderStreamsImpl final : public HolderStreams {
 public:
  HolderStreamsImpl(const Descriptor& socket, const StreamPatience& patience,
                    const std::atomic<bool>& ending)
      : socket_(socket),
        ending_(ending),
        input_(socket, patience),
        output_(socket, FrameType::kOut, patience.output_us),
        errors_(socket, FrameType::kErr, patience.output_us),
        in_(&input_),
        out_(&output_),
        err_(&errors_) {
    in_.tie(&out_);
    err_.tie(&out_);
    err_ << std::unitbuf;
  }

  // The server lets the streams go behind the exit code.
  ~HolderStreamsImpl() override {
    for (const std::function<void()>& work : afterwards_) work();
  }

  std::istream& in() override { return in_; }
  std::ostream& out() override { return out_; }
  std::ostream& err() override { return err_; }
  bool cancelled() const override { return ending_ || peer_is_gone(socket_); }
  void afterwards(std::function<void()> work) override { afterwards_.push_back(std::move(work)); }

 private:
  const Descriptor& socket_;
  const std::atomic<bool>& ending_;
  FrameInput input_;
  FrameOutput output_;
  FrameOutput errors_;
  std::istream in_;
  std::ostream out_;
  std::ostream err_;
  std::vector<std::function<void()>> afterwards_;
};

}  // namespace

std::unique_ptr<HolderStreams> make_holder_streams(const Descriptor& socket,
                                                   const StreamPatience& patience,
                                                   const std::atomic<bool>& ending) {
  return std::make_unique<HolderStreamsImpl>(socket, patience, ending);
}

}  // namespace ember
