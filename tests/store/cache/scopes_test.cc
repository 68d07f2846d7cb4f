// Scopes: tenants over one store. What each finds, what it pays, and that it learns nothing of
// another.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/store/cache/cache_harness.h"

namespace ember::testing {
namespace {

using Tokens = std::vector<TokenId>;
constexpr size_t kSpan = 64;

RequestScope tenant(std::string name) { return {.tenant = std::move(name)}; }
RequestScope publisher(std::string name, size_t tokens) {
  return {.tenant = std::move(name), .publish_tokens = tokens, .may_publish = true};
}

// A published prompt of `shared` tokens and what one tenant said after it.
Tokens conversation(uint64_t prompt, size_t shared, uint64_t own, size_t count) {
  Tokens tokens = CacheHarness::tokens(prompt, shared);
  const Tokens more = CacheHarness::tokens(own, count);
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

class ScopesTest : public ::testing::Test {
 protected:
  CacheHarness::Outcome feed(CacheHarness& harness, const RequestScope& scope,
                             const Tokens& tokens) {
    const auto outcome = harness.feed(tokens, true, true, scope);
    EXPECT_TRUE(outcome.opened);
    return outcome;
  }
  void settle(CacheHarness& harness) {
    harness.sync();
    harness.drain();
  }

  MemoryStore store_;
};

TEST_F(ScopesTest, ATenantsPromptIsAMissForEveryoneElseAlsoAfterReopening) {
  CacheHarness harness({}, store_);
  const Tokens tokens = CacheHarness::tokens(1, 200);
  feed(harness, tenant("anna"), tokens);
  settle(harness);
  for (bool reopened : {false, true}) {
    if (reopened) harness.reopen();
    EXPECT_EQ(harness.cache().match(tokens, tenant("anna")).tokens, 199u);
    EXPECT_EQ(harness.cache().match(tokens, tenant("ben")).tokens, 0u);
    EXPECT_EQ(harness.cache().match(tokens, tenant("Anna")).tokens, 0u);
    EXPECT_EQ(harness.cache().match(tokens).tokens, 0u);
  }
  EXPECT_EQ(harness.cache().stats().foreign_blocks, 0u);
  EXPECT_EQ(feed(harness, tenant("anna"), tokens).restored, 199u);
  EXPECT_EQ(feed(harness, tenant("ben"), tokens).restored, 0u);
  settle(harness);
  EXPECT_EQ(store_.blocks.size(), 6u) << "equal tokens of two tenants are two chains";
  EXPECT_EQ(store_.tails.size(), 2u) << "nor does one's tail replace the other's";
  harness.expect_sound();
}

TEST_F(ScopesTest, APublishedPromptIsSharedAndWhatFollowsIsNot) {
  CacheHarness harness({}, store_);
  const Tokens anna = conversation(1, 128, 2, 100);
  const Tokens ben = conversation(1, 128, 3, 100);
  feed(harness, publisher("operator", 128), CacheHarness::tokens(1, 130));
  EXPECT_EQ(feed(harness, tenant("anna"), anna).restored, 128u);
  EXPECT_EQ(feed(harness, tenant("ben"), ben).restored, 128u);
  settle(harness);
  EXPECT_EQ(store_.blocks.size(), 4u) << "the prompt is stored once";
  for (bool reopened : {false, true}) {
    if (reopened) harness.reopen();
    EXPECT_EQ(feed(harness, tenant("anna"), anna).restored, 227u);
    EXPECT_EQ(feed(harness, tenant("ben"), ben).restored, 227u);
    EXPECT_EQ(harness.cache().match(anna, tenant("ben")).tokens, 128u);
    EXPECT_EQ(harness.cache().match(anna).tokens, 128u);
    harness.expect_sound();
  }
}

TEST_F(ScopesTest, AChainThatLeftSharedNeverComesBack) {
  CacheHarness harness({}, store_);
  const Tokens tokens = CacheHarness::tokens(1, 4 * kSpan);
  // Two blocks are published, then two are anna's.
  feed(harness, publisher("anna", 2 * kSpan + 63), tokens);
  settle(harness);
  const auto rows = harness.cache().rows();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].scope, "shared");
  EXPECT_EQ(rows[2].scope, "anna");
  EXPECT_EQ(rows[2].parent, rows[1].hash);
  EXPECT_EQ(rows[3].scope, "anna");
  // Publishing further does not turn private blocks into shared ones: they are computed once more.
  EXPECT_EQ(harness.cache().match(tokens, tenant("anna")).tokens, 4 * kSpan - 1);
  EXPECT_EQ(harness.cache().match(tokens, publisher("anna", 4 * kSpan)).tokens, 2 * kSpan);
  EXPECT_EQ(feed(harness, publisher("anna", 4 * kSpan), tokens).restored, 2 * kSpan);
  EXPECT_EQ(harness.cache().match(tokens, tenant("ben")).tokens, 4 * kSpan - 1);
  settle(harness);
  harness.reopen();
  EXPECT_EQ(harness.cache().match(tokens, tenant("ben")).tokens, 4 * kSpan - 1);
  harness.expect_sound();
}

TEST_F(ScopesTest, PublishingWithoutTheRightIsRefusedAndWritesNothing) {
  CacheHarness harness({}, store_);
  const Tokens tokens = CacheHarness::tokens(1, 128);
  const RequestScope scope = {.tenant = "anna", .publish_tokens = 128};
  const auto chain = harness.cache().open_chain(tokens, 0, tokens.size(), scope);
  ASSERT_FALSE(chain.ok());
  EXPECT_EQ(chain.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(harness.cache().match(tokens, scope).tokens, 0u);
  EXPECT_TRUE(harness.cache().rows().empty());
}

TEST_F(ScopesTest, BadNamesAndMissingOnesAreRefused) {
  CacheHarness harness({.tenants = {.required = true}}, store_);
  const Tokens tokens = CacheHarness::tokens(1, 128);
  for (const RequestScope& scope :
       {tenant(""), tenant("shared"), tenant(std::string(129, 'x')), tenant("a\nb")}) {
    EXPECT_FALSE(harness.cache().open_chain(tokens, 0, tokens.size(), scope).ok());
    EXPECT_EQ(harness.cache().match(tokens, scope).tokens, 0u);
  }
  EXPECT_TRUE(harness.cache().open_chain(tokens, 0, tokens.size(), tenant("x")).ok());
}

// A tenant that computes a published block anew, as where a short hit is not worth a restore, needs
// no copy of its own, and heals it where it was damaged.
TEST_F(ScopesTest, WhatIsPublishedIsNotStoredAgainForATenant) {
  CacheHarness harness({}, store_);
  const Tokens tokens = CacheHarness::tokens(1, 3 * kSpan);
  feed(harness, publisher("operator", 2 * kSpan), Tokens(tokens.begin(), tokens.begin() + 129));
  settle(harness);
  store_.corrupt(harness.hash_of(tokens, 1), 0);
  harness.cache().drop_tier(Tier::kDevice);
  harness.cache().drop_tier(Tier::kHost);
  EXPECT_EQ(feed(harness, tenant("anna"), tokens).restored, kSpan);
  settle(harness);
  EXPECT_EQ(store_.blocks.size(), 3u);
  harness.reopen();
  EXPECT_EQ(harness.cache().match(tokens, tenant("ben")).tokens, 2 * kSpan);
  EXPECT_EQ(feed(harness, tenant("anna"), tokens).restored, 3 * kSpan - 1);
  EXPECT_EQ(harness.cache().stats().dedup_mismatch, 0u);
  harness.expect_sound();
}

TEST_F(ScopesTest, ARecordOfAnotherTenantIsNeverReadAsOnesOwn) {
  CacheHarness harness({}, store_);
  const Tokens tokens = CacheHarness::tokens(1, 129);
  feed(harness, tenant("anna"), tokens);
  settle(harness);
  // As an attacker with a hand in the store would do it: ben's name on anna's records.
  for (auto* records : {&store_.blocks, &store_.tails}) {
    for (auto& [hash, block] : *records) block.record.scope = "ben";
  }
  EXPECT_EQ(harness.cache().match(tokens, tenant("ben")).tokens, 0u);
  harness.reopen();
  EXPECT_EQ(harness.cache().match(tokens, tenant("ben")).tokens, 0u);
  EXPECT_EQ(harness.cache().match(tokens, tenant("anna")).tokens, 0u);
  EXPECT_EQ(harness.cache().stats().unreadable_records, 3u);
}

}  // namespace
}  // namespace ember::testing
