// Messages: what a command says on standard error, one line each.
//
// Journey    the commands -> [messages] -> standard error
// Invariant  a message is one line, whatever is in it
// Threads    any
#pragma once

#include <ostream>
#include <string_view>

namespace ember {

// "emberkv: MESSAGE" on standard error, line breaks in the message made blanks.
void print_error(std::string_view message);
void print_error(std::ostream& err, std::string_view message);
// "emberkv: warning: MESSAGE".
void print_warning(std::string_view message);

// What to do about damage, for whoever finds some: one line.
inline constexpr const char* kRepairIsNext =
    "emberkv repair is next (--dry-run shows what it does)";

}  // namespace ember
