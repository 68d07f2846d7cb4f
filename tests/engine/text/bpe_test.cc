// Tests of BPE: against the plain rule over seeds, and at length.
#include "engine/text/bpe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "base/prng.h"

namespace ember {
namespace {

// A vocabulary over "abc" whose merges are drawn by seed.
BpeModel random_model(uint64_t seed) {
  Prng random(seed);
  BpeModel model;
  std::vector<std::string> tokens = {"a", "b", "c"};
  for (size_t i = 0; i < tokens.size(); ++i) {
    model.vocabulary[tokens[i]] = static_cast<TokenId>(i);
  }
  for (int i = 0; i < 25; ++i) {
    const std::string left = tokens[random.below(tokens.size())];
    const std::string right = tokens[random.below(tokens.size())];
    const auto [place, is_new] =
        model.vocabulary.try_emplace(left + right, static_cast<TokenId>(tokens.size()));
    if (is_new) tokens.push_back(left + right);
    model.merges.push_back({model.vocabulary[left], model.vocabulary[right], place->second});
  }
  return model;
}

// The rule as it is told: find the best pair, merge its first place, look again.
std::vector<TokenId> plain_encode(const BpeModel& model, const std::string& piece) {
  std::map<std::pair<TokenId, TokenId>, std::pair<size_t, TokenId>> rules;
  for (size_t rank = 0; rank < model.merges.size(); ++rank) {
    const BpeMerge& merge = model.merges[rank];
    rules[{merge.left, merge.right}] = {rank, merge.result};
  }
  std::vector<TokenId> ids;
  for (const char c : piece) ids.push_back(model.vocabulary.find(std::string(1, c))->second);
  while (true) {
    size_t best = ids.size();
    size_t best_rank = model.merges.size();
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto rule = rules.find({ids[i], ids[i + 1]});
      if (rule == rules.end() || rule->second.first >= best_rank) continue;
      best = i;
      best_rank = rule->second.first;
    }
    if (best == ids.size()) return ids;
    ids[best] = rules[{ids[best], ids[best + 1]}].second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(BpeTest, EqualsThePlainRule) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const BpeModel model = random_model(seed);
    Bpe bpe(model);
    Prng random(seed + 1000);
    for (int round = 0; round < 20; ++round) {
      std::string piece;
      const uint64_t size = 1 + random.below(90);
      for (uint64_t i = 0; i < size; ++i) piece += "abc"[random.below(3)];
      const std::vector<TokenId> expected = plain_encode(model, piece);
      for (int again = 0; again < 2; ++again) {  // the second time from what is kept
        std::vector<TokenId> ids;
        bpe.encode(piece, ids);
        ASSERT_EQ(ids, expected) << "seed " << seed << " piece " << piece;
      }
    }
  }
}

TEST(BpeTest, OneMegabyteOfOneCharacterTakesNoQuadraticTime) {
  BpeModel model;
  std::string token = "a";
  model.vocabulary[token] = 0;
  for (TokenId id = 0; id < 10; ++id) {
    token += token;
    model.vocabulary[token] = id + 1;
    model.merges.push_back({id, id, id + 1});
  }
  Bpe bpe(std::move(model));
  const auto start = std::chrono::steady_clock::now();
  std::vector<TokenId> ids;
  bpe.encode(std::string(size_t{1} << 20, 'a'), ids);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(ids, std::vector<TokenId>(1024, 10));
  EXPECT_LT(took.count(), 20.0) << "a quadratic form takes hours";
}

TEST(BpeTest, IgnoreMergesTakesAWholePiece) {
  BpeModel model;
  model.vocabulary = {{"a", 0}, {"b", 1}, {"ab", 2}};
  model.ignore_merges = true;
  std::vector<TokenId> ids;
  Bpe bpe(model);
  bpe.encode("ab", ids);
  bpe.encode("abb", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{2, 0, 1, 1}));
}

TEST(BpeTest, UnknownCharactersGiveNothing) {
  BpeModel model;
  model.vocabulary = {{"a", 0}, {"aa", 1}};
  model.merges = {{0, 0, 1}};
  std::vector<TokenId> ids;
  Bpe bpe(model);
  bpe.encode("azé", ids);
  bpe.encode("aza", ids);
  bpe.encode("z", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{0, 1}));
}

}  // namespace
}  // namespace ember
