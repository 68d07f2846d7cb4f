// Version: of this program, as --version and the holder's greeting tell it.
//
// Journey    none
// Threads    any
#pragma once

namespace ember {

inline constexpr const char* kProgramVersion = "0.1.0";

}  // namespace ember
