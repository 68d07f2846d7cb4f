// Tests of UTF-8: what is well-formed, and that pieces decode as the whole does.
#include "engine/text/utf8.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace ember {
namespace {

TEST(Utf8Test, IllFormedBytesAreFound) {
  EXPECT_EQ(find_ill_formed("aé你😀"), std::string_view::npos);
  EXPECT_EQ(find_ill_formed("ab\xFF"), 2U);
  EXPECT_EQ(find_ill_formed("\xC0\x80"), 0U) << "overlong";
  EXPECT_EQ(find_ill_formed("\xED\xA0\x80"), 0U) << "surrogate";
  EXPECT_EQ(find_ill_formed("\xF4\x90\x80\x80"), 0U) << "beyond U+10FFFF";
  EXPECT_EQ(find_ill_formed("a\xE4\xBD"), 1U) << "cut off";
}

TEST(Utf8Test, EachMaximalPartBecomesOneReplacement) {
  EXPECT_EQ(lossy_utf8("a\xE4\xBD"
                       "b"),
            "a\uFFFDb");
  EXPECT_EQ(lossy_utf8("\xE4\xBD"), "\uFFFD");
  EXPECT_EQ(lossy_utf8("\xF0\x9F\x98"
                       "\xF0\x9F\x98\x80"),
            "\uFFFD😀");
  EXPECT_EQ(lossy_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
}

TEST(Utf8Test, PiecesDecodeAsTheWhole) {
  Prng random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    const auto size = random.below(12);
    for (uint64_t i = 0; i < size; ++i) {
      constexpr std::string_view kLikely = "a\xE4\xBD\xA0\xF0\x9F\x98\x80\xC3\xED\xFF";
      bytes += kLikely[random.below(kLikely.size())];
    }
    std::string pending;
    std::string text;
    for (const char byte : bytes) {
      pending += byte;
      take_complete_utf8(pending, text);
    }
    text += lossy_utf8(pending);
    EXPECT_EQ(text, lossy_utf8(bytes));
  }
}

TEST(Utf8Test, CodePointsAreRead) {
  EXPECT_EQ(first_code_point("é"), U'é');
  EXPECT_EQ(first_code_point("你"), U'你');
  EXPECT_EQ(first_code_point("😀"), U'😀');
  EXPECT_EQ(last_character("a😀"), 1U);
}

}  // namespace
}  // namespace ember
