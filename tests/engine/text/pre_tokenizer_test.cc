// Tests of the pre-tokenizer: each behaviour on the same text; expected values are the original's.
#include "engine/text/pre_tokenizer.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

PreTokenizerStep split_step(const std::string& pattern, SplitBehavior behavior,
                            bool invert = false) {
  PreTokenizerStep step;
  step.pattern = {pattern};
  step.behavior = behavior;
  step.invert = invert;
  return step;
}

PreTokenizerStep byte_level(bool add_prefix_space, bool use_regex) {
  PreTokenizerStep step;
  step.kind = PreTokenizerStep::Kind::kByteLevel;
  step.add_prefix_space = add_prefix_space;
  step.use_regex = use_regex;
  return step;
}

// The pieces with '|' between them.
std::string pieces_of(const std::vector<PreTokenizerStep>& steps, const std::string& text) {
  auto pre_tokenizer = PreTokenizer::build(steps);
  if (!pre_tokenizer.ok()) return pre_tokenizer.error().message;
  Pieces pieces(text);
  const Status status = pre_tokenizer->run(pieces);
  if (!status.ok()) return status.error().message;
  std::string out;
  for (const auto& range : pieces.ranges) {
    if (!out.empty()) out += '|';
    out += pieces.view(range);
  }
  return out;
}

TEST(PreTokenizerTest, FiveBehaviors) {
  const std::string text = "the-final--countdown";
  const auto split = [&](SplitBehavior behavior, bool invert = false) {
    return pieces_of({split_step("-", behavior, invert)}, text);
  };
  EXPECT_EQ(split(SplitBehavior::kRemoved), "the|final|countdown");
  EXPECT_EQ(split(SplitBehavior::kIsolated), "the|-|final|-|-|countdown");
  EXPECT_EQ(split(SplitBehavior::kMergedWithPrevious), "the-|final-|-|countdown");
  EXPECT_EQ(split(SplitBehavior::kMergedWithNext), "the|-final|-|-countdown");
  EXPECT_EQ(split(SplitBehavior::kContiguous), "the|-|final|--|countdown");
  EXPECT_EQ(split(SplitBehavior::kRemoved, true), "-|-|-");
  EXPECT_EQ(split(SplitBehavior::kMergedWithNext, true), "the-|final-|-|countdown");
}

TEST(PreTokenizerTest, MatchesAtTheEndsStandAlone) {
  EXPECT_EQ(pieces_of({split_step("-", SplitBehavior::kMergedWithPrevious)}, "-a-"), "-|a-");
  EXPECT_EQ(pieces_of({split_step("-", SplitBehavior::kMergedWithNext)}, "-a-"), "-a|-");
}

TEST(PreTokenizerTest, LookAroundStopsAtAPiecesEnds) {
  EXPECT_EQ(pieces_of({split_step("[0-9]+", SplitBehavior::kIsolated),
                       split_step("b$|^c", SplitBehavior::kIsolated)},
                      "ab12cd"),
            "a|b|12|c|d");
}

TEST(PreTokenizerTest, EmptyPatternCutsEveryCharacter) {
  EXPECT_EQ(pieces_of({split_step("", SplitBehavior::kIsolated)}, "aéb"), "a|é|b");
}

TEST(PreTokenizerTest, ByteLevelWritesBytesAsCharacters) {
  EXPECT_EQ(pieces_of({byte_level(false, false)}, "a b\né"), "aĠbĊÃ©");
  EXPECT_EQ(pieces_of({byte_level(true, false)}, "a"), "Ġa");
  EXPECT_EQ(pieces_of({byte_level(true, false)}, " a"), "Ġa");
  EXPECT_EQ(pieces_of({byte_level(true, false)}, ""), "");
  EXPECT_EQ(pieces_of({byte_level(false, true)}, "I'm here  now 12!"), "I|'m|Ġhere|Ġ|Ġnow|Ġ12|!");
}

TEST(PreTokenizerTest, NothingIsOnePiece) { EXPECT_EQ(pieces_of({}, "a b"), "a b"); }

}  // namespace
}  // namespace ember
