// Stop on signal: ^C, a terminal that closes and SIGTERM end a command at a place of its choice.
//
// Journey    a signal -> [stop_on_signal] -> warm, top: what is done so far is kept and told
// Invariant  a second signal ends the process at once, as it would have without us
// Threads    one of these at a time, of one thread's; asked() from any
// Not here   chat, whose talks end one by one (tools/commands/talk/chat.cc)
#pragma once

namespace ember {

class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  // Whether a signal has come since the latest of these was made.
  static bool asked();
};

}  // namespace ember
