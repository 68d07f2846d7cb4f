// Exit codes: what every command of emberkv tells its caller.
//
// Journey    none; the end of a command
// Invariant  the numbers are public and never change
#pragma once

namespace ember {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed =
    1;  // the input, the store or the machine; one line on stderr says
inline constexpr int kExitUsage = 2;  // the command line itself

}  // namespace ember
