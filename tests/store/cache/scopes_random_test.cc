// Scopes over random histories: many tenants, publishing, eviction, restarts, against a plain set
// of chains.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/prng.h"
#include "tests/store/cache/cache_harness.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

using Tokens = std::vector<TokenId>;
constexpr size_t kSpan = 8;
constexpr size_t kMostBlocks = 5;
constexpr size_t kTenants = 4;

// A full block: whose, after how many shared blocks, and all tokens from the root to its end.
using ChainKey = std::tuple<std::string, size_t, Tokens>;

// What the store must know, as a set of chains and brute force.
class NaiveScopes {
 public:
  struct Path {
    size_t tokens = 0;
    size_t shared_blocks = 0;  // of the path
  };

  Path match(const RequestScope& scope, const Tokens& prompt) const {
    const size_t limit = prompt.size() - 1;
    const size_t earliest = scope.publish_tokens / kSpan;
    Path best;
    for (const auto& [name, shared, path] : chains_) {
      const bool is_shared = name == "shared";
      if (!is_shared && (name != scope.tenant || shared < earliest)) continue;
      size_t agree = 0;
      while (agree < std::min(prompt.size(), path.size()) && prompt[agree] == path[agree]) ++agree;
      if (is_shared) agree -= agree % kSpan;
      if (!is_shared && std::min(agree, limit) <= shared * kSpan) continue;
      agree = std::min(agree, limit);
      const size_t part = is_shared ? (agree + kSpan - 1) / kSpan : shared;
      if (agree > best.tokens || (agree == best.tokens && part > best.shared_blocks)) {
        best = {agree, part};
      }
    }
    return best;
  }
  void commit(const RequestScope& scope, const Tokens& prompt, const Path& restored) {
    size_t shared = std::min(restored.shared_blocks, restored.tokens / kSpan);
    bool alone = restored.tokens / kSpan > shared;
    for (size_t i = restored.tokens / kSpan; i < prompt.size() / kSpan; ++i) {
      const auto end = static_cast<std::ptrdiff_t>((i + 1) * kSpan);
      const Tokens path(prompt.begin(), prompt.begin() + end);
      const bool publish = i < scope.publish_tokens / kSpan;
      if (!alone && (publish || chains_.contains({"shared", 0, path}))) {
        chains_.insert({"shared", 0, path});
        shared = i + 1;
      } else {
        alone = true;
        chains_.insert({scope.tenant, shared, path});
      }
    }
  }
  const std::set<ChainKey>& chains() const { return chains_; }
  void keep_only(std::set<ChainKey> chains) { chains_ = std::move(chains); }

 private:
  std::set<ChainKey> chains_;
};

// The chains that the cache's rows say it has, in any tier.
std::set<ChainKey> chains_of(const std::vector<BlockCache::Row>& rows) {
  std::map<std::string, ChainKey> known;  // by hash
  std::set<ChainKey> chains;
  for (const BlockCache::Row& row : rows) {
    ChainKey key{row.scope, 0, {}};
    if (const auto parent = known.find(row.parent.hex()); parent != known.end()) {
      const auto& [scope, shared, path] = parent->second;
      EXPECT_TRUE(scope == row.scope || scope == "shared") << "never back, never to another";
      std::get<1>(key) = scope == "shared" && row.scope != "shared" ? path.size() / kSpan : shared;
      std::get<2>(key) = path;
    }
    Tokens& path = std::get<2>(key);
    path.insert(path.end(), row.tokens.begin(), row.tokens.end());
    EXPECT_EQ(path.size(), (row.position + 1) * kSpan);
    known.emplace(row.hash.hex(), key);
    const bool somewhere = std::any_of(row.in.begin(), row.in.end(), [](bool in) { return in; });
    if (somewhere && !row.damaged) chains.insert(std::move(key));
  }
  return chains;
}

class History {
 public:
  History(uint64_t seed, HarnessOptions options, MemoryStore& store)
      : random_(seed), harness_(options, store) {}

  // Few kinds of blocks, so that tenants ask for the same prompts all the time.
  Tokens prompt() {
    Tokens tokens;
    const size_t blocks = 1 + random_.below(kMostBlocks);
    for (size_t i = 0; i < blocks; ++i) {
      const auto kind = static_cast<TokenId>(random_.below(2));
      for (size_t t = 0; t < kSpan; ++t) {
        tokens.push_back(static_cast<TokenId>(100 * i + 10 * static_cast<size_t>(kind) + t));
      }
    }
    tokens.resize(std::max<size_t>(2, tokens.size() - random_.below(kSpan)));
    return tokens;
  }
  RequestScope scope() {
    const uint64_t who = random_.below(kTenants);
    RequestScope scope{.tenant = "tenant" + std::to_string(who)};
    if (who == 0 && random_.below(2) == 0) {  // the one that may publish
      scope.may_publish = true;
      scope.publish_tokens = random_.below(kMostBlocks * kSpan);
    }
    return scope;
  }
  void feed() {
    const RequestScope who = scope();
    const Tokens tokens = prompt();
    const NaiveScopes::Path expected = model_.match(who, tokens);
    const auto outcome = harness_.feed(tokens, false, true, who);
    ASSERT_TRUE(outcome.opened);
    ASSERT_EQ(outcome.restored, expected.tokens);
    model_.commit(who, tokens, expected);
    if (random_.below(3) == 0) harness_.sync();
  }
  void compare_answers() {
    for (int i = 0; i < 6; ++i) {
      const RequestScope who = scope();
      const Tokens tokens = prompt();
      ASSERT_EQ(harness_.cache().match(tokens, who).tokens, model_.match(who, tokens).tokens);
    }
  }
  // After what may have evicted: what is left is a part of what was, and answers follow from it.
  void take_over_what_is_left() {
    const std::set<ChainKey> left = chains_of(harness_.cache().rows());
    for (const ChainKey& chain : left) ASSERT_TRUE(model_.chains().contains(chain));
    model_.keep_only(left);
  }
  void settle() {
    harness_.sync();
    harness_.drain();
  }
  CacheHarness& harness() { return harness_; }
  const NaiveScopes& model() const { return model_; }
  Prng& random() { return random_; }

 private:
  Prng random_;
  CacheHarness harness_;
  NaiveScopes model_;
};

HarnessOptions small(uint64_t seed) {
  return {.sim_seed = seed, .layers = 2, .span = kSpan, .device_slots = 160, .host_slots = 40};
}

TEST(ScopesRandomTest, EveryAnswerIsThatOfTheSetOfChains) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    MemoryStore store;
    History history(seed, small(seed), store);
    for (int i = 0; i < 60; ++i) {
      history.feed();
      history.compare_answers();
      if (history.random().below(12) == 0) {
        history.settle();
        history.harness().reopen();
      }
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
    EXPECT_EQ(chains_of(history.harness().cache().rows()), history.model().chains());
    EXPECT_EQ(history.harness().cache().stats().dedup_mismatch, 0u);
    history.harness().expect_sound();
  }
}

TEST(ScopesRandomTest, EvictionTakesAwayAndNeverMixes) {
  uint64_t evicted = 0;  // a reopened cache counts anew
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    MemoryStore store;
    store.limit_bytes = 5'000;
    HarnessOptions options = small(seed);
    options.device_slots = 16;
    options.host_slots = 8;
    History history(seed, options, store);
    for (int i = 0; i < 60; ++i) {
      history.feed();
      history.settle();
      history.take_over_what_is_left();
      history.compare_answers();
      if (history.random().below(12) == 0) {
        evicted += history.harness().cache().stats().evicted_blocks;
        history.harness().reopen();
        history.take_over_what_is_left();
        history.compare_answers();
      }
      history.harness().expect_sound();
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
    evicted += history.harness().cache().stats().evicted_blocks;
  }
  EXPECT_GT(evicted, 0u);
}

TEST(ScopesRandomTest, TheRealStoreGivesBackEveryScope) {
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const TempFolder folder;
    MemoryStore unused;
    HarnessOptions options = small(seed);
    options.path = folder / "store";
    History history(seed, options, unused);
    for (int i = 0; i < 40; ++i) {
      history.feed();
      if (i % 13 == 12) {
        history.settle();
        history.harness().reopen();
      }
      history.compare_answers();
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
    history.settle();
    history.harness().reopen();
    EXPECT_EQ(chains_of(history.harness().cache().rows()), history.model().chains());
    EXPECT_EQ(history.harness().cache().stats().foreign_blocks, 0u);
  }
}

}  // namespace
}  // namespace ember::testing
