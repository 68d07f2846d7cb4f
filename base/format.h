// Format: text in printf's form, put at the end of a string.
//
// Journey    none; tables and reports
// Threads    any
#pragma once

#include <string>

namespace ember {

__attribute__((format(printf, 2, 3))) void print_to(std::string& out, const char* format, ...);

}  // namespace ember
