// Tests of the Unicode forms: old characters change, younger ones do not, case is today's.
#include "engine/text/unicode_forms.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

TEST(UnicodeFormsTest, FourForms) {
  EXPECT_EQ(in_form(UnicodeForm::kNfc, "e\u0301\u212B"), "\u00E9\u00C5");
  EXPECT_EQ(in_form(UnicodeForm::kNfd, "\u00E9\uAC01"), "e\u0301\u1100\u1161\u11A8");
  EXPECT_EQ(in_form(UnicodeForm::kNfkc, "\uFB01\u2460\uFF21"), "fi1A");
  EXPECT_EQ(in_form(UnicodeForm::kNfkd, "\uFB01\u00E9"), "fie\u0301");
  EXPECT_EQ(in_form(UnicodeForm::kNfd, "a\u0301\u0323"), "a\u0323\u0301") << "marks have an order";
  EXPECT_EQ(in_form(UnicodeForm::kNfc, ""), "");
}

TEST(UnicodeFormsTest, CharactersYoungerThanUnicode9StayAsTheyAre) {
  EXPECT_EQ(in_form(UnicodeForm::kNfkc, "\u32FF"), "\u32FF") << "the era Reiwa came with 12.1";
  EXPECT_EQ(in_form(UnicodeForm::kNfkc, "\u337B"), "\u5E73\u6210") << "the era Heisei is old";
  EXPECT_EQ(in_form(UnicodeForm::kNfd, "a\u0301\u1DF6"), "a\u0301\u1DF6") << "a mark of 10.0";
  EXPECT_EQ(without_marks("a\u0301\u1DF6\u0903"), "a\u1DF6");
}

TEST(UnicodeFormsTest, LowerCaseIsOfEachCharacterAlone) {
  EXPECT_EQ(in_lower_case("ABCxyz1!"), "abcxyz1!");
  EXPECT_EQ(in_lower_case("\u00C4\u0391\u03A3"), "\u00E4\u03B1\u03C3") << "no final sigma";
  EXPECT_EQ(in_lower_case("\u0130"), "i\u0307");
  EXPECT_EQ(in_lower_case("\U00016EA0\uA7CB\uA7D4\uA7CD"), "\U00016EBB\u0264\uA7D5\uA7CD");
}

}  // namespace
}  // namespace ember
