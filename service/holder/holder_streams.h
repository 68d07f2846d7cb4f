// Holder streams: a command's three standard streams when its terminal is another process's.
//
// Journey    the holder's command -> [holder_streams] -> frames -> the client's streams, and back
// Owns       a buffer of at most one frame for each stream
// Invariant  standard input is asked for a frame at a time, only while the command reads it; a
//            stream whose client is gone fails like one that was closed
// Threads    one: the command's. cancelled() from any
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <ostream>

#include "service/holder/holder_socket.h"

namespace ember {

class HolderStreams {
 public:
  virtual ~HolderStreams() = default;
  virtual std::istream& in() = 0;
  virtual std::ostream& out() = 0;  // sent when flushed, or when a frame is full
  virtual std::ostream& err() = 0;  // sent at once, what stands in out() before it
  // The client is gone, or the holder ends: whatever runs for it should end soon.
  virtual bool cancelled() const = 0;
  // Runs `work` when the client has been told how its command ended, or could not be told: what
  // lets the holder end belongs there.
  virtual void afterwards(std::function<void()> work) = 0;
};

struct StreamPatience {
  int64_t frame_us = 0;   // for the rest of a frame of input
  int64_t output_us = 0;  // for a client that does not read
};

// Over `socket`, which outlives it; `ending` tells that the holder ends.
std::unique_ptr<HolderStreams> make_holder_streams(const Descriptor& socket,
                                                   const StreamPatience& patience,
                                                   const std::atomic<bool>& ending);

}  // namespace ember
