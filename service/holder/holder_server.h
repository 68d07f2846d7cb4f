// Holder server: the process that has a store open answers other commands on a socket in it.
//
// Journey    holder_client -> [holder_server] -> handler (a command, run in this process)
// Owns       <folder>/holder.sock (0600), a thread that accepts, one for each connection
// Invariant  at most `most_connections` at once, more are told that it is busy; only this user and
//            root are served; a client that is gone, slow or hostile costs its own connection alone
// Threads    start, stop: one. The handler runs on the connection's thread
// Not here   what a command does: frames and sockets only
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "service/holder/holder_frames.h"
#include "service/holder/holder_streams.h"

namespace ember {

struct HolderServerOptions {
  std::string folder;   // the store, which this process holds
  std::string program;  // its version
  size_t most_connections = 8;
  int64_t frame_patience_us = 10'000'000;    // for a request, and for the rest of any frame
  int64_t output_patience_us = 300'000'000;  // for a client that does not read
};

// Returns the exit code. What it throws is reported to the client, with code 1.
using HolderHandler = std::function<int(const HolderRequest&, HolderStreams&)>;

struct HolderServerStats {
  uint64_t open = 0;     // connections now
  uint64_t served = 0;   // commands that ran
  uint64_t busy = 0;     // turned away for the number of connections
  uint64_t refused = 0;  // of another user, or without a whole request in time
};

class HolderServer {
 public:
  // Replaces a socket on which nobody answers. Errors: kBusy (another process answers on it), kIo
  // (the path is named; a file that is no socket is left alone).
  static Result<std::unique_ptr<HolderServer>> start(const HolderServerOptions& options,
                                                     HolderHandler handler);
  // Stops.
  virtual ~HolderServer() = default;
  // Hangs up on every client, waits for their handlers and removes the socket.
  virtual void stop() = 0;
  virtual HolderServerStats stats() const = 0;  // Threads: any
};

}  // namespace ember
