// fork, exec and poll behind the few calls that a driver needs.
#include "tools/journey_demo/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"

namespace ember {
namespace {

Error io_error(const std::string& what) {
  return {ErrorCode::kIo, what + ": " + std::strerror(errno)};
}

// Waits until `fd` is ready for `events`; false when the deadline passed first.
bool wait_ready(int fd, short events, int64_t deadline_us) {
  while (true) {
    const int64_t left_us = deadline_us - system_clock().now_us();
    if (left_us <= 0) return false;
    pollfd poll_fd{fd, events, 0};
    const int ready =
        poll(&poll_fd, 1, static_cast<int>(std::min<int64_t>(left_us / 1000 + 1, 1000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// In the child, after fork: only calls that are safe there.
[[noreturn]] void become(const std::vector<char*>& arguments, int input, int output, int errors) {
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  signal(SIGPIPE, SIG_DFL);
  execv(arguments[0], arguments.data());
  _exit(127);
}

// A file without a name, for the child's standard error.
int unnamed_file() {
  std::FILE* file = std::tmpfile();
  if (file == nullptr) return -1;
  const int fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
  std::fclose(file);
  return fd;
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::vector<std::string>& command) {
  EMBER_CHECK(!command.empty(), "a child needs a command");
  signal(SIGPIPE, SIG_IGN);  // a child that died is an error of write(), not the end of its parent
  std::array<int, 2> input{-1, -1};
  std::array<int, 2> output{-1, -1};
  std::unique_ptr<ChildProcess> child(new ChildProcess());
  child->error_file_ = unnamed_file();
  if (child->error_file_ < 0) return io_error("temporary file");
  if (pipe2(input.data(), O_CLOEXEC) != 0) return io_error("pipe");
  child->input_ = input[1];
  if (pipe2(output.data(), O_CLOEXEC) != 0) {
    close(input[0]);
    return io_error("pipe");
  }
  child->output_ = output[0];
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  child->pid_ = fork();
  if (child->pid_ == 0) become(arguments, input[0], output[1], child->error_file_);
  close(input[0]);
  close(output[1]);
  if (child->pid_ < 0) return io_error("fork for " + command[0]);
  return child;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) kill_now();
  close_input();
  if (output_ >= 0) close(output_);
  if (error_file_ >= 0) close(error_file_);
}

Status ChildProcess::write(std::string_view text, int64_t patience_us) {
  EMBER_CHECK(input_ >= 0, "write after close_input");
  const int64_t deadline_us = system_clock().now_us() + patience_us;
  while (!text.empty()) {
    if (!wait_ready(input_, POLLOUT, deadline_us)) {
      return {ErrorCode::kIo, "the child did not read its input in time"};
    }
    // A pipe that is ready takes at least PIPE_BUF bytes without blocking.
    const ssize_t put = ::write(input_, text.data(), std::min<size_t>(text.size(), 4096));
    if (put < 0) {
      if (errno == EINTR) continue;
      return io_error("writing to the child");
    }
    text.remove_prefix(static_cast<size_t>(put));
  }
  return {};
}

void ChildProcess::close_input() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

Result<bool> ChildProcess::fill(int64_t deadline_us) {
  if (!wait_ready(output_, POLLIN, deadline_us)) {
    return Error{ErrorCode::kIo, "the child said nothing in time"};
  }
  std::array<char, 65536> buffer;
  const ssize_t got = read(output_, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR ? Result<bool>(true) : io_error("reading from the child");
  pending_.append(buffer.data(), static_cast<size_t>(got));
  return got > 0;
}

Result<std::optional<std::string>> ChildProcess::read_line(int64_t patience_us) {
  const int64_t deadline_us = system_clock().now_us() + patience_us;
  while (true) {
    const size_t end = pending_.find('\n');
    if (end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return std::optional<std::string>(std::move(line));
    }
    EMBER_ASSIGN(const bool more, fill(deadline_us));
    if (!more) return std::optional<std::string>();
  }
}

Result<std::string> ChildProcess::read_rest(int64_t patience_us) {
  const int64_t deadline_us = system_clock().now_us() + patience_us;
  while (true) {
    EMBER_ASSIGN(const bool more, fill(deadline_us));
    if (!more) return std::move(pending_);
  }
}

void ChildProcess::reap(bool block) {
  if (exit_code_) return;
  int status = 0;
  pid_t got = 0;
  do {
    got = waitpid(pid_, &status, block ? 0 : WNOHANG);
  } while (got < 0 && errno == EINTR);
  if (got != pid_) return;
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void ChildProcess::kill_now() {
  if (exit_code_) return;
  kill(pid_, SIGKILL);
  reap(true);
}

Result<int> ChildProcess::wait(int64_t patience_us) {
  const int64_t deadline_us = system_clock().now_us() + patience_us;
  while (true) {
    reap(false);
    if (exit_code_) return *exit_code_;
    if (system_clock().now_us() > deadline_us) {
      return Error{ErrorCode::kIo, "the child did not end in time"};
    }
    usleep(1000);
  }
}

std::string ChildProcess::errors() const {
  std::string text;
  std::array<char, 4096> buffer;
  off_t offset = 0;
  while (true) {
    const ssize_t got = pread(error_file_, buffer.data(), buffer.size(), offset);
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
    offset += got;
  }
}

}  // namespace ember
