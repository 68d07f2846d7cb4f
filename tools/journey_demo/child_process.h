// Child process: a program run over pipes, line by line, with a bound on every wait.
//
// Journey    none; how the demo and the tests drive emberkv from outside
// Owns       the child and its pipes; a child still running at the end is killed and reaped
// Invariant  no call waits longer than it was told
// Threads    one
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ember {

// A child that says nothing for this long is a failure.
inline constexpr int64_t kChildPatienceUs = 120'000'000;

class ChildProcess {
 public:
  // Starts `command` (a path, then arguments). Standard error is kept aside, see errors().
  // Errors: kIo naming the command.
  static Result<std::unique_ptr<ChildProcess>> start(const std::vector<std::string>& command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Writes all of `text` to the child's standard input. Errors: kIo when the child does not read.
  Status write(std::string_view text, int64_t patience_us = kChildPatienceUs);
  void close_input();
  // The next line without its end; nothing at the end of output.
  // Errors: kIo when none came in time.
  Result<std::optional<std::string>> read_line(int64_t patience_us = kChildPatienceUs);
  // All that is left of the output. Errors: as read_line.
  Result<std::string> read_rest(int64_t patience_us = kChildPatienceUs);

  // SIGKILL, and waits until the child is gone. Safe on a child that has ended.
  void kill_now();
  // Waits for the end: the exit code, or 128 + signal. Errors: kIo when it did not end in time.
  Result<int> wait(int64_t patience_us = kChildPatienceUs);
  // What the child wrote to standard error so far.
  std::string errors() const;
  int pid() const { return pid_; }

 private:
  ChildProcess() = default;
  // Reads what is there into pending_, waiting until `deadline_us`. False: the end of output.
  Result<bool> fill(int64_t deadline_us);
  void reap(bool block);

  int pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  int error_file_ = -1;
  std::optional<int> exit_code_;
  std::string pending_;
};

}  // namespace ember
