// The parent's side of forkpty.
#include "tests/tools/pseudo_terminal.h"

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/clock.h"

namespace ember {
namespace {

constexpr int64_t kPatienceUs = 60'000'000;
constexpr int kSliceMs = 200;

}  // namespace

PseudoTerminal::PseudoTerminal(const std::vector<std::string>& command, const Options& options) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const winsize size{options.rows, options.columns, 0, 0};
  pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
  if (pid_ != 0) return;
  ::setenv("TERM", options.term.c_str(), 1);
  ::setenv("LC_ALL", "C.UTF-8", 1);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

PseudoTerminal::~PseudoTerminal() {
  if (pid_ > 0 && !ended_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (terminal_ >= 0) ::close(terminal_);
}

void PseudoTerminal::press(const std::string& keys) {
  static_cast<void>(!::write(terminal_, keys.data(), keys.size()));
}

void PseudoTerminal::resize(unsigned short columns, unsigned short rows) {
  const winsize size{rows, columns, 0, 0};
  ::ioctl(terminal_, TIOCSWINSZ, &size);
}

bool PseudoTerminal::read_some(int timeout_ms) {
  pollfd poll{terminal_, POLLIN, 0};
  if (::poll(&poll, 1, timeout_ms) <= 0) return false;
  char part[4096];
  const ssize_t got = ::read(terminal_, part, sizeof part);
  if (got <= 0) return false;
  shown_.append(part, static_cast<size_t>(got));
  return true;
}

bool PseudoTerminal::shows(const std::string& words) {
  const int64_t deadline_us = system_clock().now_us() + kPatienceUs;
  while (shown_.find(words) == std::string::npos) {
    if (system_clock().now_us() > deadline_us) return false;
    read_some(kSliceMs);
  }
  return true;
}

int PseudoTerminal::wait() {
  const int64_t deadline_us = system_clock().now_us() + kPatienceUs;
  while (system_clock().now_us() < deadline_us) {
    while (read_some(kSliceMs)) {
    }
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) continue;
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return -1;
}

}  // namespace ember
