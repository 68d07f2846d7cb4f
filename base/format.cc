// Measures the text first, so that nothing is cut.
#include "base/format.h"

#include <cstdarg>
#include <cstdio>

#include "base/check.h"

namespace ember {

void print_to(std::string& out, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  EMBER_CHECK(length >= 0, "a format that printf understands");
  const size_t before = out.size();
  out.resize(before + static_cast<size_t>(length) + 1);  // its zero too
  std::vsnprintf(out.data() + before, static_cast<size_t>(length) + 1, format, again);
  va_end(again);
  out.pop_back();
}

}  // namespace ember
