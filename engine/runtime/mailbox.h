// Mailbox: other threads have something done on the engine thread, and wait for it.
//
// Journey    a client's thread -> [mailbox] -> scheduler's tick -> block_cache, chat_session
// Owns       at most kMostLetters closures that have not run yet
// Invariant  a closure whose caller was told of an error never runs; none runs after close()
// Threads    call, post: any but the engine's. Made, closed and destroyed on the engine thread
// Not here   what is done: each closure takes well under a tick (10 ms), or submits work by ticket
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "engine/runtime/scheduler.h"
#include "kernels/device.h"

namespace ember {

class Mailbox {
 public:
  static constexpr size_t kMostLetters = 64;

  // Both outlive it. While it lives Scheduler::tick() says that work is left.
  Mailbox(Device& device, Scheduler& scheduler);
  ~Mailbox() { close(); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Wakes the engine thread, which runs `work` in one of its ticks; returns when it has run.
  // Errors: it has not and will not: kCancelled when the mailbox is closed, kBusy when it is full
  // or the engine thread did not come to it within `patience_us`.
  Status call(const std::function<void()>& work, int64_t patience_us);
  // The same without waiting. False: it is closed or full.
  bool post(std::function<void()> work);
  // Those who wait are told kCancelled. To be called before whoever uses it is waited for.
  void close();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ember
