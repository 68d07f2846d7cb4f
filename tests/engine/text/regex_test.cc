// Tests of Regex: the order of matches, Unicode 16, and errors instead of crashes.
#include "engine/text/regex.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

// The matches, each in brackets.
std::string matches(const PatternText& pattern, const std::string& text) {
  auto regex = Regex::compile(pattern);
  if (!regex.ok()) return regex.error().message;
  std::vector<Regex::Match> found;
  const Status status = regex->find_all(text, found);
  if (!status.ok()) return status.error().message;
  std::string out;
  for (const auto& match : found) {
    out.append("[").append(text, match.begin, match.end - match.begin).append("]");
  }
  return out;
}

std::string matches(const std::string& pattern, const std::string& text) {
  return matches(PatternText{pattern}, text);
}

TEST(RegexTest, EmptyMatchAfterAMatchIsSkipped) {
  EXPECT_EQ(matches("x*", "axxéb"), "[][xx][][]");
  EXPECT_EQ(matches("", "né"), "[][][]");
}

TEST(RegexTest, CharactersNewSinceUnicode14AreKnown) {
  EXPECT_EQ(matches("\\p{L}+", "\u1C89x"), "[\u1C89x]");
  EXPECT_EQ(matches("[\\p{S}]", "\U0001FA89"), "[\U0001FA89]");
  EXPECT_EQ(matches("\\P{L}", "\u1C89"), "");
  EXPECT_EQ(matches("\\p{^Uppercase_Letter}", "\u1C89"), "");
  EXPECT_EQ(matches("\\p{Mc}|\\p{Mn}", "\U0001171E"), "[\U0001171E]");
  EXPECT_EQ(matches("\\p{Mn}", "\U0001171E"), "") << "it became a spacing mark";
  EXPECT_EQ(matches("\\p{Han}", "\U0002EBF0"), "[\U0002EBF0]");
  EXPECT_EQ(matches("\\w[\\w]\\W[\\W]", "\u1C89\u1C89!?"), "[\u1C89\u1C89!?]");
  EXPECT_EQ(matches("\\d", "\U00010D40"), "[\U00010D40]");
}

TEST(RegexTest, FractionsAreWordsOnlyOutsideBrackets) {
  EXPECT_EQ(matches("\\w", "½é!"), "[½][é]") << "Oniguruma's own way";
  EXPECT_EQ(matches("[\\w]", "½é!"), "[é]");
  EXPECT_EQ(matches("\\W", "½é!"), "[!]");
}

TEST(RegexTest, LiteralMatchesItself) {
  const std::string text = "a.b*(c)[d]{e}^$|\\-#&~?+";
  EXPECT_EQ(matches(PatternText{text, true}, "x" + text + "y" + text),
            "[" + text + "][" + text + "]");
  EXPECT_EQ(matches(PatternText{"aa", true}, "aaaaa"), "[aa][aa]");
  EXPECT_EQ(matches(PatternText{"", true}, "né"), "[][][]");
}

TEST(RegexTest, BadPatternIsAnErrorThatQuotesIt) {
  const auto regex = Regex::compile("a(b");
  ASSERT_FALSE(regex.ok());
  EXPECT_EQ(regex.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(regex.error().message.find("a(b"), std::string::npos) << regex.error().message;
  EXPECT_FALSE(Regex::compile("(?W:\\w)").ok());
}

TEST(RegexTest, DeepNestingAndEndlessBacktrackingAreErrors) {
  EXPECT_FALSE(Regex::compile(std::string(100000, '(') + std::string(100000, ')')).ok());
  auto regex = Regex::compile("(?:a|a)+b|(?:a|b|ab)*c");
  ASSERT_TRUE(regex.ok());
  std::vector<Regex::Match> found;
  const Status status = regex->find_all(std::string(60, 'a') + "d", found);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("gave up"), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace ember
