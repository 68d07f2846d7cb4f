// Check: what cannot happen aborts at once, with the place and the reason.
//
// Journey    none; used everywhere
// Not here   what can go wrong in a good program (base/result.h)
#pragma once

namespace ember {

// Prints the failed condition and aborts. Never returns.
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const char* message);

}  // namespace ember

// Always on, in every build. `message` is a string literal that says what was broken.
#define EMBER_CHECK(condition, message)                               \
  do {                                                                \
    if (!(condition)) [[unlikely]] {                                  \
      ::ember::check_failed(#condition, __FILE__, __LINE__, message); \
    }                                                                 \
  } while (false)
