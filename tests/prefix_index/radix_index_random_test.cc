// Radix index, random histories over many seeds, compared with the naive model after every step.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/prng.h"
#include "tests/prefix_index/naive_index.h"

namespace ember {
namespace {

constexpr uint32_t kScopes = 3;  // `shared` and two tenants
constexpr size_t kMostBlocks = 24;

// One random history. Two letters and short blocks make branches, splits and tails frequent.
class History {
 public:
  History(uint64_t seed, uint32_t span) : random_(seed), span_(span), index_(span), model_(span) {}

  void step() {
    switch (random_.below(10)) {
      case 0:
      case 1:
      case 2:
        insert();
        break;
      case 3:
        erase();
        break;
      case 4:
      case 5:
        place();
        break;
      case 6:
        evict();
        break;
      case 7:
        damage();
        break;
      case 8:
        touch();
        break;
      default:
        set_build();
        break;
    }
  }
  void compare() {
    model_.expect_equal(index_);
    for (int i = 0; i < 4 && !::testing::Test::HasFatalFailure(); ++i) {
      const std::vector<TokenId> prompt = random_tokens(random_.below(4 * span_ + 1));
      const size_t limit = random_.below(3) == 0 ? random_.below(4 * span_) : prompt.size();
      const size_t shared = random_.below(3) == 0 ? random_.below(3) : 0;
      model_.expect_same_match(index_, pick_scope(), prompt, limit, random_.below(3), shared);
    }
  }
  const NaiveIndex& model() const { return model_; }

 private:
  std::vector<TokenId> random_tokens(size_t count) {
    std::vector<TokenId> tokens(count);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random_.below(2));
    return tokens;
  }
  ScopeId pick_scope() { return ScopeId{static_cast<uint32_t>(random_.below(kScopes))}; }
  NaiveBlock* pick() {
    std::vector<NaiveBlock>& all = model_.blocks();
    return all.empty() ? nullptr : &all[random_.below(all.size())];
  }

  void insert() {
    const NaiveBlock* parent = random_.below(4) == 0 ? nullptr : pick();
    if (parent != nullptr && parent->token_count < span_) parent = nullptr;
    if (model_.blocks().size() >= kMostBlocks) return;
    NaiveBlock block;
    block.scope = pick_scope();
    if (parent != nullptr) {
      block.shared_blocks = parent->shared_blocks;
      if (parent->scope != kSharedScope) block.scope = parent->scope;
      if (parent->scope == kSharedScope) block.shared_blocks = parent->path.size() / span_;
    }
    if (block.scope == kSharedScope) block.shared_blocks = 0;
    const bool full = random_.below(2) == 0;
    block.token_count = static_cast<uint32_t>(full ? span_ : 1 + random_.below(span_));
    const std::vector<TokenId> tokens = random_tokens(block.token_count);
    if (parent != nullptr) block.path = parent->path;
    block.path.insert(block.path.end(), tokens.begin(), tokens.end());
    block.build = 1 + random_.below(2);
    block.last_use = ++now_;
    const size_t before = index_.size();
    // Few different hashes, so that many blocks collide.
    BlockHash hash;
    hash.bytes[3] = static_cast<uint8_t>(random_.below(4));
    block.id =
        index_.insert(block.scope, parent == nullptr ? kNoBlock : parent->id, tokens, hash,
                      block.build, block.last_use);
    for (const NaiveBlock& known : model_.blocks()) {
      if (!known.same_place(block)) continue;
      ASSERT_EQ(known.id, block.id);
      ASSERT_EQ(index_.size(), before);
      return;
    }
    ASSERT_EQ(index_.size(), before + 1);
    model_.blocks().push_back(block);
  }
  void erase() {
    for (size_t i = 0; i < model_.blocks().size(); ++i) {
      const NaiveBlock& block = model_.blocks()[i];
      if (block.anywhere() || !model_.children_of(block).empty()) continue;
      index_.erase(block.id);
      model_.blocks().erase(model_.blocks().begin() + static_cast<ptrdiff_t>(i));
      return;
    }
  }
  void place() {
    NaiveBlock* block = pick();
    if (block == nullptr) return;
    const size_t tier = random_.below(kTierCount);
    block->place[tier] = static_cast<int32_t>(random_.below(100));
    index_.set_place(block->id, kAllTiers[tier], block->place[tier]);
  }
  // Takes a copy away: mostly one that may go, now and then any (as a failure would).
  void evict() {
    NaiveBlock* block = pick();
    if (block == nullptr) return;
    const size_t tier = random_.below(kTierCount);
    if (!model_.may_leave(*block, tier) && random_.below(4) != 0) return;
    block->place[tier] = -1;
    index_.clear_place(block->id, kAllTiers[tier]);
  }
  void damage() {
    NaiveBlock* block = pick();
    if (block == nullptr) return;
    block->damaged = random_.below(2) == 0;
    index_.set_damaged(block->id, block->damaged);
  }
  void touch() {
    std::vector<BlockId> touched;
    const bool hit = random_.below(2) == 0;
    ++now_;
    for (NaiveBlock& block : model_.blocks()) {
      if (random_.below(3) != 0) continue;
      touched.push_back(block.id);
      block.last_use = now_;
      if (hit) ++block.hits;
    }
    for (BlockId block : touched) index_.touch(block, now_, hit);
  }
  void set_build() {
    NaiveBlock* block = pick();
    if (block == nullptr) return;
    block->build = 1 + random_.below(2);
    index_.set_numerics_build(block->id, block->build);
  }

  Prng random_;
  const uint32_t span_;
  RadixIndex index_;
  NaiveIndex model_;
  uint64_t now_ = 0;
};

TEST(RadixIndexRandomTest, EveryStepOfEveryHistoryAgreesWithTheModel) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    History history(seed, seed % 2 == 0 ? 2 : 3);
    for (int i = 0; i < 120; ++i) {
      history.step();
      history.compare();
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
  }
}

// Blocks arrive parent before child, holes open at random, and from then on only what the sets
// offer is taken: nothing that is stored may ever lose its way to the root, save below a hole.
TEST(RadixIndexRandomTest, EvictionBySetsNeverStrandsABlock) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Prng random(seed);
    RadixIndex index(2);
    NaiveIndex model(2);
    for (int i = 0; i < 14; ++i) {
      NaiveBlock block;
      const NaiveBlock* parent = nullptr;
      if (!model.blocks().empty()) parent = &model.blocks()[random.below(model.blocks().size())];
      if (random.below(3) == 0) block.scope = ScopeId{1};
      if (parent != nullptr) {
        block.path = parent->path;
        block.shared_blocks = parent->shared_blocks;
        if (parent->scope != kSharedScope) block.scope = parent->scope;
        if (parent->scope == kSharedScope) block.shared_blocks = parent->path.size() / 2;
      }
      if (block.scope == kSharedScope) block.shared_blocks = 0;
      block.token_count = 2;
      for (int t = 0; t < 2; ++t) block.path.push_back(static_cast<TokenId>(random.below(3)));
      block.id = index.insert(block.scope, parent == nullptr ? kNoBlock : parent->id,
                              TokenSpan(block.path).last(2), BlockHash{}, 1, random.below(9));
      if (index.entry(block.id).anywhere()) continue;
      for (size_t tier = 0; tier < kTierCount; ++tier) {
        const bool placed = random.below(2) == 0 || (tier == 3 && !block.anywhere());
        if (!placed) continue;
        block.place[tier] = 1;
        index.set_place(block.id, kAllTiers[tier], 1);
      }
      model.blocks().push_back(block);
    }
    for (int hole = 0; hole < 2; ++hole) {
      NaiveBlock& block = model.blocks()[random.below(model.blocks().size())];
      block.damaged = true;
      block.place.fill(-1);
      index.set_damaged(block.id, true);
      for (Tier tier : kAllTiers) index.clear_place(block.id, tier);
    }
    const auto anything = [](BlockId) { return true; };
    for (int idle = 0; idle < 80; ++idle) {
      const Tier tier = kAllTiers[random.below(kTierCount)];
      const std::optional<BlockId> gone = index.evictable(tier).oldest(anything);
      if (!gone.has_value()) continue;
      idle = 0;
      index.clear_place(*gone, tier);
      for (NaiveBlock& block : model.blocks()) {
        if (block.id == *gone) block.place[static_cast<size_t>(tier)] = -1;
      }
      for (const NaiveBlock& block : model.blocks()) {
        ASSERT_FALSE(model.stranded(block)) << "seed " << seed;
      }
    }
    for (Tier tier : kAllTiers) ASSERT_EQ(index.count(tier), 0u) << "all could go, seed " << seed;
  }
}

}  // namespace
}  // namespace ember
