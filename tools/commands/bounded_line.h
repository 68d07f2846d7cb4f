// Bounded line: one line of an input that others made, of which no more is kept than it may have.
//
// Journey    stream -> [bounded_line] -> talk, warm
// Invariant  never holds more than `most` bytes
// Threads    one
#pragma once

#include <cstddef>
#include <istream>
#include <string>

namespace ember {

enum class LineEnd {
  kLine,     // a line, without its end (the last one may have none)
  kTooLong,  // more than `most` bytes: where it stopped, the stream stands
  kNoMore,
};
LineEnd read_bounded_line(std::istream& in, std::string& line, size_t most);

}  // namespace ember
