// Reading a line byte by byte from the stream's buffer.
#include "tools/commands/bounded_line.h"

#include <streambuf>

namespace ember {

LineEnd read_bounded_line(std::istream& in, std::string& line, size_t most) {
  line.clear();
  const std::istream::sentry ready(in, true);  // what waits in a tied stream is sent first
  if (!ready) return LineEnd::kNoMore;
  std::streambuf& input = *in.rdbuf();
  for (int c = input.sbumpc(); c != '\n'; c = input.sbumpc()) {
    if (c == std::char_traits<char>::eof()) {
      in.setstate(std::ios::eofbit);
      return line.empty() ? LineEnd::kNoMore : LineEnd::kLine;
    }
    if (line.size() == most) return LineEnd::kTooLong;
    line += static_cast<char>(c);
  }
  return LineEnd::kLine;
}

}  // namespace ember
