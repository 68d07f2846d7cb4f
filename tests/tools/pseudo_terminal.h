// Pseudo terminal: a program on a terminal of the test's own: its size, its keys, what it shows.
#pragma once

#include <string>
#include <vector>

namespace ember {

class PseudoTerminal {
 public:
  struct Options {
    std::string term = "xterm";
    unsigned short columns = 80;
    unsigned short rows = 24;
  };
  // Runs `command` (a path, then arguments) on it.
  PseudoTerminal(const std::vector<std::string>& command, const Options& options);
  // Hangs up and kills what is still running.
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  void press(const std::string& keys);
  void resize(unsigned short columns, unsigned short rows);
  // Forgets what was shown so far.
  void forget() { shown_.clear(); }
  // Reads until `words` have been shown since the last forget(); false: they were not in time.
  bool shows(const std::string& words);
  // Reads to the end; the exit code, 128 and the signal, or -1: it did not end in time.
  int wait();
  const std::string& shown() const { return shown_; }

 private:
  bool read_some(int timeout_ms);  // false: nothing came, or the end

  int pid_ = -1;
  int terminal_ = -1;
  bool ended_ = false;
  std::string shown_;
};

}  // namespace ember
