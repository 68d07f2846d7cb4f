// Holder client: hands a command to the process that holds the store, and is its terminal.
//
// Journey    command line -> [holder_client] -> holder_server; its output -> this process's streams
// Owns       one connection
// Invariant  "nobody answers" is told apart from "another version answers" and from "too busy";
//            standard input is read only when the command asks for it
// Threads    one
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "service/holder/holder_frames.h"

namespace ember {

// File descriptors, this process's own as a rule.
struct ClientStreams {
  int in = 0;
  int out = 1;
  int err = 2;
  // Asked while the command runs; true: it is to end soon. What it then says is still carried.
  std::function<bool()> stopped = {};
};

class HolderClient {
 public:
  // Null: nobody holds the store, or the holder does not answer on a socket.
  // Errors: kUnsupported (another version, both named), kBusy (it serves as many as it may, or
  // does not greet within `patience_us`), kIo (the socket belongs to another user, or is no
  // holder's).
  static Result<std::unique_ptr<HolderClient>> connect(const std::string& folder,
                                                       int64_t patience_us = 5'000'000);
  virtual ~HolderClient() = default;

  virtual const HolderGreeting& greeting() const = 0;
  // Runs a command there until it has ended; returns its exit code. Once.
  // Errors: kCapacity (too long a command line), kBusy (the holder ended before it sent anything:
  // what changes nothing may be tried once more), kIo (it ended before the command did, or output
  // cannot be written).
  virtual Result<int> run(const HolderRequest& request, const ClientStreams& streams) = 0;
};

}  // namespace ember
