// Tests of added tokens: which match wins, and what each flag does.
#include "engine/text/added_tokens.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

struct Flags {
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = false;
};

AddedToken token(TokenId id, const std::string& content, Flags flags = {}) {
  return {id, content, flags.single_word, flags.lstrip, flags.rstrip, flags.normalized, false};
}

std::string shown(const std::string& text, const std::vector<AddedTokens::Part>& parts) {
  std::string out;
  for (const auto& part : parts) {
    if (!out.empty()) out += '|';
    const std::string piece = text.substr(part.begin, part.end - part.begin);
    if (part.id) out.append("<").append(std::to_string(*part.id)).append(":");
    out += piece;
    if (part.id) out += '>';
  }
  return out;
}

// The parts with '|' between them, added tokens as "<id:text>". Gaps go through `steps`.
std::string parts_of(const std::vector<AddedToken>& tokens, const std::string& text,
                     const std::vector<NormalizerStep>& steps = {}) {
  auto normalizer = Normalizer::build(steps);
  auto added = AddedTokens::build(tokens, *normalizer);
  if (!added.ok()) return added.error().message;
  const auto parts = added->split(text);
  if (!parts.ok()) return parts.error().message;
  std::string out;
  for (const auto& part : *parts) {
    if (!out.empty()) out += '|';
    NormalizedText gap{text.substr(part.begin, part.end - part.begin)};
    if (part.id) {
      out += shown(text, {part});
      continue;
    }
    EXPECT_TRUE(normalizer->run(gap).ok());
    out += shown(gap.text, added->split_normalized(gap.text).value());
  }
  return out;
}

TEST(AddedTokensTest, LeftmostThenLongestWins) {
  const std::vector<AddedToken> tokens = {token(1, "ab"), token(2, "abc"), token(3, "bcd")};
  EXPECT_EQ(parts_of(tokens, "xabcdab"), "x|<2:abc>|d|<1:ab>");
  EXPECT_EQ(parts_of(tokens, "abbcd"), "<1:ab>|<3:bcd>");
  EXPECT_EQ(parts_of(tokens, ""), "");
}

TEST(AddedTokensTest, NormalizedTokensComeSecond) {
  EXPECT_EQ(parts_of({token(1, "abc", {.normalized = true}), token(2, "bcd")}, "abcd abc"),
            "a|<2:bcd>| |<1:abc>");
}

TEST(AddedTokensTest, NormalizedTokensAreMetAsTheNormalizerWritesThem) {
  NormalizerStep lower;
  lower.kind = NormalizerStep::Kind::kLowercase;
  EXPECT_EQ(
      parts_of({token(1, "End", {.normalized = true}), token(2, "End")}, "xEND End end", {lower}),
      "x|<1:end>| |<2:End>| |<1:end>");
}

TEST(AddedTokensTest, StripSwallowsWhiteSpace) {
  EXPECT_EQ(parts_of({token(1, "T", {.lstrip = true})}, "a \u3000T b"), "a|<1: \u3000T>| b");
  EXPECT_EQ(parts_of({token(1, "T", {.rstrip = true})}, "a T \nb"), "a |<1:T \n>|b");
  EXPECT_EQ(parts_of({token(1, "T", {.lstrip = true, .rstrip = true})}, "T  T"), "<1:T  >|<1:T>");
}

TEST(AddedTokensTest, TokenInsideSwallowedSpaceStillCounts) {
  EXPECT_EQ(parts_of({token(1, "T", {.rstrip = true}), token(2, "\n")}, "T \n\r\nb"),
            "<1:T \n\r\n>|<2:\n>|\r|<2:\n>|b");
}

TEST(AddedTokensTest, SingleWordNeedsFreeEnds) {
  const std::vector<AddedToken> tokens = {token(1, "at", {.single_word = true})};
  EXPECT_EQ(parts_of(tokens, "at cat at. éat at\u200D at_"),
            "<1:at>| cat |<1:at>|. éat at\u200D at_");
  EXPECT_EQ(parts_of(tokens, "½at½"), "½|<1:at>|½");
}

TEST(AddedTokensTest, LongRunsOfSpaceTakeNoQuadraticTime) {
  const std::vector<AddedToken> tokens = {token(1, " ", {.lstrip = true, .rstrip = true})};
  auto normalizer = Normalizer::build({});
  auto added = AddedTokens::build(tokens, *normalizer);
  ASSERT_TRUE(added.ok());
  const auto parts = added->split(std::string(size_t{1} << 20, ' '));
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->front().end, size_t{1} << 20);
}

}  // namespace
}  // namespace ember
