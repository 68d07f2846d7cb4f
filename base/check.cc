// Where a broken invariant ends the program.
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace ember {

void check_failed(const char* condition, const char* file, int line, const char* message) {
  std::fprintf(stderr, "%s:%d: check failed: %s (%s)\n", file, line, message, condition);
  std::abort();
}

}  // namespace ember
