// Tenants: quotas, and what one can observe of another: nothing but how busy the machine is.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/store/cache/cache_harness.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

using Tokens = std::vector<TokenId>;
constexpr size_t kSpan = 64;

RequestScope tenant(std::string name) { return {.tenant = std::move(name)}; }
RequestScope publisher(std::string name, size_t tokens) {
  return {.tenant = std::move(name), .publish_tokens = tokens, .may_publish = true};
}

void settle(CacheHarness& harness) {
  harness.sync();
  harness.drain();
}

Tokens joined(Tokens tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

// Everything that a request's owner gets to see, as text.
class Witness {
 public:
  Witness(CacheHarness& harness, std::string name) : harness_(harness), name_(std::move(name)) {}

  void ask(const Tokens& tokens) {
    const BlockCache::Match match = harness_.cache().match(tokens, tenant(name_));
    note("match", match.tokens);
    for (uint64_t tokens_of_tier : match.tokens_by_tier) note("tier", tokens_of_tier);
    const auto outcome = harness_.feed(tokens, true, true, tenant(name_));
    for (uint64_t restored : outcome.report.restored_tokens) note("restored", restored);
    note("damaged", outcome.report.damaged_blocks);
    settle(harness_);
    look();
  }
  void look() {
    const TenantStats stats = harness_.cache().stats_of(name_);
    note("usable", stats.store_usable ? 1 : 0);
    for (uint64_t blocks : stats.blocks) note("blocks", blocks);
    note("tails", stats.tail_records);
    note("bytes", stats.disk_bytes);
    note("quota", stats.quota_bytes);
    for (uint64_t tokens : stats.restored_tokens) note("tokens", tokens);
    note("committed", stats.committed_blocks);
    note("evicted", stats.quota_evicted_blocks);
    note("refused", stats.quota_refused_blocks);
    for (const BlockCache::Row& row : harness_.cache().rows_of(name_)) {
      seen_ += row.hash.hex() + " after " + row.parent.hex() + " in " + row.scope + " by " +
               row.publisher + "\n";
      note("row", row.position);
      note("count", row.token_count);
      note("stored", row.stored_bytes);
      note("hits", row.hits);
      note("used", static_cast<uint64_t>(row.last_use_unix_us));
      for (bool in : row.in) note("in", in ? 1 : 0);
      for (TokenId token : row.tokens) note("token", static_cast<uint64_t>(token));
    }
  }
  const std::string& seen() const { return seen_; }

 private:
  void note(const char* what, uint64_t value) {
    seen_ += std::string(what) + " " + std::to_string(value) + "\n";
  }
  CacheHarness& harness_;
  std::string name_;
  std::string seen_;
};

// What ben sees in a world where anna works beside him, or not.
std::string bens_view(bool with_anna) {
  MemoryStore store;
  ManualClock clock;
  clock.advance_us(1'000'000);
  CacheHarness harness({.device_slots = 160, .host_slots = 80, .clock = &clock}, store);
  const Tokens prompt = CacheHarness::tokens(1, 2 * kSpan);
  const Tokens secret = joined(prompt, CacheHarness::tokens(2, 150));
  harness.feed(joined(prompt, {7}), true, true, publisher("operator", prompt.size()));
  settle(harness);
  Witness ben(harness, "ben");
  for (uint64_t round = 0; round < 3; ++round) {
    if (with_anna) {
      harness.feed(secret, true, true, tenant("anna"));
      harness.feed(CacheHarness::tokens(3, 200), true, true, tenant("anna"));
      harness.feed(CacheHarness::tokens(10 + round, 100), true, true, tenant("anna"));
      settle(harness);
    }
    // In which tier a shared block is tells that someone used it, which is not hidden.
    harness.cache().drop_tier(Tier::kDevice);
    harness.cache().drop_tier(Tier::kHost);
    ben.look();
    // Guesses: all of anna's prompt, a part of it, one token more, and his own.
    ben.ask(CacheHarness::tokens(3, 200));
    ben.ask(CacheHarness::tokens(3, 90));
    ben.ask(joined(secret, {5}));
    ben.ask(Tokens(secret.begin(), secret.end() - 1));
    ben.ask(joined(prompt, CacheHarness::tokens(4, 100)));
  }
  return ben.seen();
}

TEST(TenantsTest, WhatOneTenantSeesIsTheSameWithAndWithoutAnother) {
  const std::string alone = bens_view(false);
  EXPECT_GT(alone.size(), 10'000u);
  EXPECT_EQ(alone, bens_view(true));
}

TEST(TenantsTest, RowsShowWhatTheTenantSentItselfAndNoUseOfShared) {
  MemoryStore store;
  CacheHarness harness({}, store);
  const Tokens prompt = CacheHarness::tokens(1, 2 * kSpan);
  const Tokens other = CacheHarness::tokens(2, 2 * kSpan);
  harness.feed(prompt, false, true, publisher("operator", 2 * kSpan));
  harness.feed(other, false, true, publisher("operator", 2 * kSpan));
  for (int i = 0; i < 3; ++i) {
    harness.feed(joined(prompt, CacheHarness::tokens(3, 70)), false, true, tenant("anna"));
  }
  const auto rows = harness.cache().rows_of("anna");
  ASSERT_EQ(rows.size(), 3u) << "the prompt under which hers hangs, and hers";
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(rows[i].scope, "shared");
    EXPECT_EQ(rows[i].hits, 0u);
    EXPECT_EQ(rows[i].last_use_unix_us, 0);
    EXPECT_EQ(rows[i].publisher, "");
  }
  EXPECT_EQ(rows[2].scope, "anna");
  EXPECT_EQ(rows[2].hits, 2u);
  EXPECT_EQ(harness.cache().rows_of("operator").size(), 4u);
  EXPECT_EQ(harness.cache().stats_of("operator").blocks[0], 4u);
  for (const char* stranger : {"ben", "", "shared"}) {
    EXPECT_TRUE(harness.cache().rows_of(stranger).empty()) << stranger;
    EXPECT_EQ(harness.cache().stats_of(stranger).blocks[0], 0u) << stranger;
  }
  EXPECT_EQ(harness.cache().rows().size(), 5u) << "the operator of the store sees all";
}

TEST(TenantsTest, OverItsQuotaATenantsOwnOldestLeavesGo) {
  MemoryStore store;
  CacheHarness harness({.tenants = {.quotas = {{"anna", 30'000}}}}, store);
  const Tokens bens = CacheHarness::tokens(100, 200);
  harness.feed(bens, true, true, tenant("ben"));
  for (uint64_t i = 0; i < 12; ++i) {
    harness.feed(CacheHarness::tokens(i, 3 * kSpan + 1), true, true, tenant("anna"));
    settle(harness);
    const TenantStats stats = harness.cache().stats_of("anna");
    EXPECT_LE(stats.disk_bytes, 30'000u);
    EXPECT_EQ(stats.quota_bytes, 30'000u);
    EXPECT_EQ(stats.quota_refused_blocks, 0u);
    harness.expect_sound();
  }
  EXPECT_GT(harness.cache().stats_of("anna").quota_evicted_blocks, 0u);
  uint64_t hers = 0;
  for (const auto* records : {&store.blocks, &store.tails}) {
    for (const auto& [hash, block] : *records) {
      if (block.record.scope == "anna") hers += block.record.stored_bytes();
    }
  }
  EXPECT_EQ(hers, harness.cache().stats_of("anna").disk_bytes) << "counted as it is on disk";
  harness.reopen();
  EXPECT_EQ(hers, harness.cache().stats_of("anna").disk_bytes);
  EXPECT_EQ(harness.feed(bens, true, true, tenant("ben")).restored, 199u);
  const Tokens newest = CacheHarness::tokens(11, 3 * kSpan + 1);
  EXPECT_EQ(harness.feed(newest, true, true, tenant("anna")).restored, 3 * kSpan);
}

TEST(TenantsTest, WhatDoesNotFitTheQuotaIsRefusedAndTheRequestGoesOn) {
  MemoryStore store;
  CacheHarness harness({.tenants = {.quota_bytes = 10'000}}, store);
  const Tokens tokens = CacheHarness::tokens(1, 20 * kSpan);
  EXPECT_TRUE(harness.feed(tokens, true, true, tenant("anna")).opened);
  settle(harness);
  const TenantStats stats = harness.cache().stats_of("anna");
  EXPECT_LE(stats.disk_bytes, 10'000u);
  EXPECT_GT(stats.disk_bytes, 0u);
  EXPECT_GT(stats.quota_refused_blocks, 0u);
  harness.expect_sound();
  harness.reopen();
  EXPECT_GT(harness.feed(tokens, true, true, tenant("anna")).restored, 0u) << "its beginning";
}

TEST(TenantsTest, PublishedBlocksCountOnThePublishersQuotaAlsoAfterReopening) {
  MemoryStore store;
  CacheHarness harness({.tenants = {.quota_bytes = 100'000}}, store);
  const Tokens prompt = CacheHarness::tokens(1, 2 * kSpan);
  harness.feed(prompt, true, true, publisher("operator", 2 * kSpan));
  settle(harness);
  const uint64_t published = harness.cache().stats_of("operator").disk_bytes;
  EXPECT_GT(published, 0u);
  harness.feed(joined(prompt, {1, 2, 3}), false, true, tenant("anna"));
  settle(harness);
  for (bool reopened : {false, true}) {
    if (reopened) harness.reopen();
    EXPECT_EQ(harness.cache().stats_of("operator").disk_bytes, published);
    EXPECT_EQ(harness.cache().stats_of("anna").disk_bytes, 0u);
    EXPECT_EQ(harness.cache().rows()[0].publisher, "operator");
  }
}

TEST(TenantsTest, ASyncTellsATenantOfItsOwnBlocksOnly) {
  MemoryStore store;
  CacheHarness harness({.tenants = {.quotas = {{"anna", 1}}}}, store);
  EXPECT_FALSE(harness.cache().sync("nobody"));
  harness.feed(CacheHarness::tokens(1, 2 * kSpan), false, true, tenant("anna"));
  harness.feed(CacheHarness::tokens(2, 2 * kSpan), false, true, tenant("ben"));
  EXPECT_TRUE(harness.sync_for("ben").ok()) << "anna's quota is none of his business";
  harness.feed(CacheHarness::tokens(3, 2 * kSpan), false, true, tenant("anna"));
  const Status hers = harness.sync_for("anna");
  ASSERT_FALSE(hers.ok());
  EXPECT_EQ(hers.error().message, "not all blocks of the tenant could be stored");
}

// A refusal for want of room says how much, never whose.
TEST(TenantsTest, ErrorsNameNoOtherTenantsBlocks) {
  MemoryStore store;
  CacheHarness harness({.device_slots = 4}, store);
  const Tokens tokens = CacheHarness::tokens(1, 3 * kSpan);
  const auto held = harness.open_chain(tokens, 0, tenant("anna"));
  ASSERT_TRUE(held);
  const auto refused = harness.cache().open_chain(tokens, 0, tokens.size(), tenant("ben"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message.find("anna"), std::string::npos);
  EXPECT_EQ(refused.error().message.find("tenant"), std::string::npos);
}

TEST(TenantsTest, NoFileIsNamedAfterATenant) {
  const TempFolder folder;
  MemoryStore unused;
  CacheHarness harness({.path = folder / "store"}, unused);
  harness.feed(CacheHarness::tokens(1, 200), true, true, tenant("anna"));
  settle(harness);
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "store")) {
    EXPECT_EQ(entry.path().filename().string().find("anna"), std::string::npos);
    ++files;
  }
  const auto others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  const auto open_to = std::filesystem::status(folder / "store").permissions() & others;
  EXPECT_EQ(open_to, std::filesystem::perms::none);
  EXPECT_GT(files, 4u);
}

}  // namespace
}  // namespace ember::testing
