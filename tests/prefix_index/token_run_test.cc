// Token run: agreement and order, against plain loops.
#include "prefix_index/token_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/prng.h"

namespace ember {
namespace {

TEST(TokenRunTest, AgreementIsThatOfAPlainLoop) {
  Prng random(1);
  for (int i = 0; i < 5000; ++i) {
    std::vector<TokenId> a(random.below(80));
    for (TokenId& token : a) token = static_cast<TokenId>(random());
    std::vector<TokenId> b(a.begin(),
                           a.begin() + static_cast<ptrdiff_t>(random.below(a.size() + 1)));
    b.resize(b.size() + random.below(4), 7);
    if (!b.empty() && random.below(2) == 0) b[random.below(b.size())] ^= 1 << random.below(31);
    size_t expected = 0;
    while (expected < std::min(a.size(), b.size()) && a[expected] == b[expected]) ++expected;
    ASSERT_EQ(agreeing_tokens(a, b), expected);
    ASSERT_EQ(agreeing_tokens(b, a), expected);
    ASSERT_EQ(same_tokens(a, b), a == b);
    ASSERT_EQ(not_after(a, b), a <= b);
    ASSERT_EQ(not_after(b, a), b <= a);
  }
}

TEST(TokenRunTest, OrderIsByValueNotByBytes) {
  const std::vector<TokenId> small = {1};
  const std::vector<TokenId> large = {256};
  const std::vector<TokenId> negative = {-1};
  EXPECT_TRUE(not_after(small, large));
  EXPECT_FALSE(not_after(large, small));
  EXPECT_TRUE(not_after(negative, small));
}

TEST(TokenRunTest, ARunComesBeforeThoseThatExtendIt) {
  const std::vector<TokenId> run = {4, 5};
  const std::vector<TokenId> longer = {4, 5, -9};
  EXPECT_TRUE(not_after(run, longer));
  EXPECT_FALSE(not_after(longer, run));
  EXPECT_TRUE(not_after({}, run));
  EXPECT_TRUE(not_after(run, run));
}

}  // namespace
}  // namespace ember
