// Progress: a bar on standard error while something long runs, only when that is a terminal.
//
// Journey    none; shown while weights load, prompts prefill and stores are read or verified
// Invariant  writes nothing at all unless it goes to a terminal
// Threads    one
#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "tools/commands/command_context.h"

namespace ember {

class Progress {
 public:
  Progress();  // on standard error
  explicit Progress(CommandIo& io) : Progress(io.err, io.progress) {}
  Progress(std::ostream& out, bool enabled) : out_(out), enabled_(enabled) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` in [0, 1]. Redraws when a whole per cent or the name changed.
  void show(std::string_view what, double done);
  // Takes the bar off the line.
  void clear();

 private:
  std::ostream& out_;
  bool enabled_ = false;
  bool drawn_ = false;
  int percent_ = -1;
  std::string what_;
};

}  // namespace ember
