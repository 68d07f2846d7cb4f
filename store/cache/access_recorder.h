// Access recorder: writes the access log in the background, within its bound.
//
// Journey    chains that end -> [access_recorder] -> <store>/access_log
// Owns       entries that wait, at most kMostWaiting; the log's two files while the store is open
// Invariant  both files together stay within the limit; the engine thread never touches a file;
//            what finds the queue full, or cannot be written, is dropped and counted
// Threads    engine thread; one task of the read lane at a time has the files
// Not here   the bytes of the log (store/access_log.h)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "store/access_log.h"
#include "store/cache/ticket_router.h"

namespace ember {

class AccessRecorder {
 public:
  AccessRecorder(Device& device, TicketRouter& tickets) : device_(device), tickets_(tickets) {}
  // From here on entries are kept, in files of `limit_bytes` altogether.
  void start(const std::string& store, uint64_t limit_bytes);
  bool on() const { return files_ != nullptr; }
  // While what an earlier process wrote is being read, nothing is written.
  void hold() { held_ = true; }
  void let_go() { held_ = false; }
  void add(AccessEntry entry);
  // Hands what waits to a task, if none is under way. To be called after anything.
  void advance();

  uint64_t recorded() const { return recorded_; }
  uint64_t dropped() const { return dropped_; }

 private:
  static constexpr size_t kMostWaiting = 256;
  struct Files;

  Device& device_;
  TicketRouter& tickets_;
  std::shared_ptr<Files> files_;
  std::vector<AccessEntry> waiting_;
  bool writing_ = false;
  bool held_ = false;
  uint64_t recorded_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace ember
