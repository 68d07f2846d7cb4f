// What a store knows of a prompt: against a plain comparison of tokens, in all scopes.
#include "tools/commands/look/prompt_match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/prng.h"
#include "tests/tools/reader_of_records.h"

namespace ember {
namespace {

constexpr size_t kBlock = 4;
using Tokens = std::vector<TokenId>;

// Chains of blocks with the names that a store would give them.
class Chains {
 public:
  // `shared_blocks` of it are published, the rest is the scope's own.
  void add(const Tokens& tokens, const std::string& scope, size_t shared_blocks = 0) {
    const bool published = shared_blocks > 0;
    BlockHash parent = hasher(published ? "shared" : scope).root();
    for (size_t at = 0; at < tokens.size(); at += kBlock) {
      const size_t block = at / kBlock;
      const size_t count = std::min(kBlock, tokens.size() - at);
      BlockRecord record;
      record.scope = block < shared_blocks ? "shared" : scope;
      record.position = static_cast<uint32_t>(block);
      record.tail = count < kBlock;
      record.epoch = 1;
      record.parent = parent;
      record.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                           tokens.begin() + static_cast<std::ptrdiff_t>(at + count));
      record.hash = hasher(record.scope).next(parent, record.tokens);
      parent = record.hash;
      if (seen_.emplace(record.hash, true).second) reader.add(record);
    }
  }
  PromptMatch match(const Tokens& prompt, const std::string& scope) {
    const Result<BlockTree> tree = BlockTree::read(reader);
    EXPECT_TRUE(tree.ok());
    const MatchPlace place{.name_space = {}, .scope = scope, .build = {}};
    Result<PromptMatch> match = match_prompt(reader, *tree, prompt, place);
    EXPECT_TRUE(match.ok());
    return std::move(match).value();
  }

  RecordsReader reader;

 private:
  BlockHasher hasher(const std::string& scope) const { return {reader.secret(), {}, scope}; }
  std::map<BlockHash, bool> seen_;
};

Tokens draw(Prng& prng, size_t most) {
  Tokens tokens(1 + prng.below(most));
  for (TokenId& token : tokens) token = static_cast<TokenId>(prng.below(2));
  return tokens;
}

size_t common(const Tokens& a, const Tokens& b) {
  const auto split = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(split.first - a.begin());
}

TEST(PromptMatchTest, EqualsAPlainComparisonOfTokens) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Prng prng(seed);
    Chains chains;
    std::vector<Tokens> known;
    for (int i = 0; i < 6; ++i) {
      known.push_back(draw(prng, 22));
      chains.add(known.back(), "shared");
    }
    for (int i = 0; i < 20; ++i) {
      const Tokens prompt = draw(prng, 22);
      size_t expected = 0;
      for (const Tokens& one : known) expected = std::max(expected, common(prompt, one));
      const PromptMatch match = chains.match(prompt, "shared");
      EXPECT_EQ(match.tokens, std::min(expected, prompt.size() - 1)) << seed;
      uint64_t by_tier = 0;
      for (const TierRun& run : match.runs) by_tier += run.tokens;
      EXPECT_EQ(by_tier, match.tokens);
      if (match.end == MatchEnd::kDiffers) {
        ASSERT_FALSE(match.other_tokens.empty());
        EXPECT_NE(match.other_tokens[0], prompt[match.tokens]);
      }
      EXPECT_EQ(match.end == MatchEnd::kWhole, match.tokens == prompt.size() - 1);
    }
  }
}

TEST(PromptMatchTest, ATenantGoesOnUnderWhatIsPublished) {
  Chains chains;
  chains.add({1, 2, 3, 4, 5, 6, 7, 8, 9, 9}, "acme", 1);
  EXPECT_EQ(chains.match({1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 0}, "acme").tokens, 10u);
  EXPECT_EQ(chains.match({1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 0}, "other").tokens, 4u);
  EXPECT_EQ(chains.match({1, 2, 3, 0}, "other").tokens, 0u)
      << "published blocks agree whole or not at all";
  EXPECT_EQ(chains.match({1, 2, 3, 4, 0}, "shared").tokens, 4u);
}

TEST(PromptMatchTest, TheEndSaysWhy) {
  Chains chains;
  EXPECT_EQ(chains.match({1, 2}, "shared").end, MatchEnd::kNothing);
  chains.add({1, 2, 3, 4, 5, 6, 7, 8}, "shared");
  EXPECT_EQ(chains.match({1, 2, 3, 4, 5, 0, 0}, "shared").end, MatchEnd::kDiffers);
  EXPECT_EQ(chains.match({1, 2, 3, 4, 5, 0, 0}, "shared").other_tokens, (Tokens{6, 7, 8}));
  EXPECT_EQ(chains.match({1, 2, 3, 4, 5, 6, 7, 8, 9, 9}, "shared").end, MatchEnd::kUnknown);
  EXPECT_EQ(chains.match({1, 2, 3, 4, 5}, "shared").end, MatchEnd::kWhole);
  EXPECT_EQ(chains.match({}, "shared").tokens, 0u);
}

}  // namespace
}  // namespace ember
