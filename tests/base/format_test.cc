// Text appended in printf's form.
#include "base/format.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

TEST(FormatTest, TextIsAppendedWhole) {
  std::string out = "a";
  print_to(out, "%d %s", 7, "b");
  print_to(out, "%s", "");
  EXPECT_EQ(out, "a7 b");
  const std::string large(5000, 'x');
  print_to(out, "%s.%5.1f", large.c_str(), 2.25);
  EXPECT_EQ(out, "a7 b" + large + ".  2.2");
}

}  // namespace
}  // namespace ember
