// Writing a line.
#include "tools/commands/messages.h"

#include <cstdint>
#include <cstdio>

#include "tools/commands/text_form.h"

namespace ember {

void print_error(std::string_view message) {
  std::fprintf(stderr, "emberkv: %s\n", one_line(message, SIZE_MAX).c_str());
}

void print_error(std::ostream& err, std::string_view message) {
  err << "emberkv: " << one_line(message, SIZE_MAX) << std::endl;
}

void print_warning(std::string_view message) {
  std::fprintf(stderr, "emberkv: warning: %s\n", one_line(message, SIZE_MAX).c_str());
}

}  // namespace ember
