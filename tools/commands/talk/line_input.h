// Line input: standard input as a stream whose reader can be sent home.
//
// Journey    terminal -> [line_input] -> talk
// Invariant  reads only what is there, and nothing once it was interrupted
// Threads    one reads; interrupt() from any
#pragma once

#include <istream>
#include <memory>

namespace ember {

class LineInput {
 public:
  virtual ~LineInput() = default;
  virtual std::istream& stream() = 0;
  // Whoever reads, or will read, finds the end of input.
  virtual void interrupt() = 0;
};

// Over a file descriptor, which stays open.
std::unique_ptr<LineInput> make_line_input(int fd);

}  // namespace ember
