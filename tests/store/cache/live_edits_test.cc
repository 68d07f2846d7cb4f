// Changing the store of a running cache: what goes, what stays for whose sake, what a new process
// finds.
#include "store/live_edits.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "store/edit/live_editor.h"
#include "store/live_view.h"
#include "store/store_editor.h"
#include "tests/store/cache/cache_harness.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;
constexpr size_t kBlocks = 4;

class LiveEditsTest : public ::testing::Test {
 protected:
  HarnessOptions options() {
    HarnessOptions options;
    options.path = folder_ / "store";
    options.sim_seed = 0;  // its own workers: an editor waits for them
    return options;
  }
  // A chain's blocks and its tail, the last first.
  static std::vector<EraseItem> items_of(CacheHarness& harness,
                                         const std::vector<TokenId>& tokens) {
    std::vector<EraseItem> items;
    for (const BlockCache::Row& row : harness.cache().rows()) {
      const size_t from = row.position * kSpan;
      const TokenSpan here = TokenSpan(tokens).subspan(std::min(from, tokens.size()));
      const bool mine = row.tokens.size() <= here.size() &&
                        std::equal(row.tokens.begin(), row.tokens.end(), here.begin());
      if (!mine) continue;
      items.push_back({.hash = row.hash, .stored_bytes = row.stored_bytes,
                       .position = row.position, .tail = row.token_count < kSpan});
    }
    std::sort(items.begin(), items.end(),
              [](const EraseItem& a, const EraseItem& b) { return a.position > b.position; });
    return items;
  }
  static std::unique_ptr<StoreEditor> editor_of(CacheHarness& harness) {
    LiveEditorCalls calls;
    calls.call = [](const std::function<void()>& work) {
      work();
      return Status();
    };
    calls.wait_for = [&harness](const std::function<Ticket()>& begin) {
      const Ticket ticket = begin();
      return ticket ? harness.await(ticket) : Status();
    };
    calls.cancelled = [] { return false; };
    auto editor = open_live_editor(harness.cache(), std::move(calls));
    EXPECT_TRUE(editor.ok()) << editor.error().message;
    return editor.ok() ? std::move(*editor) : nullptr;
  }
  static Erased erase(StoreEditor& editor, const std::vector<EraseItem>& items) {
    Result<Erased> erased = editor.erase(items, [](uint64_t) { return true; });
    EXPECT_TRUE(erased.ok()) << erased.error().message;
    return erased.ok() ? *erased : Erased{};
  }

  TempFolder folder_;
  MemoryStore store_;
  const std::vector<TokenId> tokens_ = CacheHarness::tokens(1, kSpan * kBlocks + 10);
  const std::vector<TokenId> others_ = CacheHarness::tokens(2, kSpan * kBlocks + 10);
};

TEST_F(LiveEditsTest, ErasedChainIsNotFoundAgainAndOthersAre) {
  CacheHarness harness(options(), store_);
  harness.feed(tokens_);
  harness.feed(others_);
  harness.sync();
  const std::vector<EraseItem> items = items_of(harness, tokens_);
  ASSERT_EQ(items.size(), kBlocks + 1);
  const std::unique_ptr<StoreEditor> editor = editor_of(harness);
  const Erased erased = erase(*editor, items);
  EXPECT_EQ(erased.blocks, kBlocks);
  EXPECT_EQ(erased.tails, 1u);
  EXPECT_EQ(erased.stayed(), 0u);
  EXPECT_EQ(harness.cache().match(tokens_).tokens, 0u);
  EXPECT_EQ(harness.cache().match(others_).tokens, others_.size() - 1);
  harness.expect_sound();
  harness.reopen();
  EXPECT_EQ(harness.cache().match(tokens_).tokens, 0u);
  EXPECT_EQ(harness.feed(others_).restored, others_.size() - 1);
  // And it can be computed again.
  EXPECT_EQ(harness.feed(tokens_).restored, 0u);
  harness.sync();
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens_).restored, tokens_.size() - 1);
}

TEST_F(LiveEditsTest, WhatIsUsedPinnedOrNeededStays) {
  CacheHarness harness(options(), store_);
  harness.feed(tokens_, false);
  harness.feed(others_, false);
  harness.sync();
  const std::vector<EraseItem> items = items_of(harness, tokens_);
  const std::vector<EraseItem> other_items = items_of(harness, others_);
  ASSERT_EQ(items.size(), kBlocks);
  const std::unique_ptr<StoreEditor> editor = editor_of(harness);
  {
    const std::unique_ptr<Chain> chain = harness.open_chain(tokens_, kSpan * 2);
    harness.wait_ready(*chain);
    const Erased erased = erase(*editor, items);
    EXPECT_EQ(erased.blocks, 2u);  // behind the part that the request uses
    EXPECT_EQ(erased.in_use, 2u);
  }
  harness.drain();
  ASSERT_TRUE(harness.cache().pin(TokenSpan(others_).first(kSpan * 2), 60'000'000).ok());
  Erased erased = erase(*editor, other_items);
  EXPECT_EQ(erased.blocks, 2u);
  EXPECT_EQ(erased.pinned, 2u);
  // A parent alone: its child stays, and so does it.
  erased = erase(*editor, {items.back()});
  EXPECT_EQ(erased.blocks, 0u);
  EXPECT_EQ(erased.needed, 1u);
  // What is said to be unreachable, and is not.
  EraseItem reached = items[2];
  reached.unreachable = true;
  erased = erase(*editor, {reached});
  EXPECT_EQ(erased.needed, 1u);
  EXPECT_EQ(harness.cache().match(tokens_).tokens, kSpan * 2);
  harness.expect_sound();
}

TEST_F(LiveEditsTest, CondemnedBlockIsKeptAsideAndComputedAnew) {
  CacheHarness harness(options(), store_);
  harness.feed(tokens_, false);
  harness.sync();
  harness.reopen();  // nothing of it is in RAM
  const std::unique_ptr<StoreEditor> editor = editor_of(harness);
  const auto record = editor->reader().record(items_of(harness, tokens_)[2].hash);
  ASSERT_TRUE(record.ok() && record->has_value());
  const Result<bool> condemned = editor->condemn(**record, true, "as a test says");
  ASSERT_TRUE(condemned.ok()) << condemned.error().message;
  EXPECT_TRUE(*condemned);
  EXPECT_EQ(editor->reader().quarantined().size(), 1u);
  const auto hole = editor->reader().record((*record)->hash);
  ASSERT_TRUE(hole.ok() && hole->has_value());
  EXPECT_EQ((*hole)->epoch, 0u) << "the next look finds the same damage";
  EXPECT_EQ(harness.cache().match(tokens_).tokens, kSpan);
  EXPECT_EQ(harness.feed(tokens_, false).restored, kSpan);
  harness.sync();
  EXPECT_EQ(harness.cache().match(tokens_).tokens, kSpan * kBlocks);
  EXPECT_TRUE(*editor->drop_quarantined(editor->reader().quarantined()[0].file));
  EXPECT_TRUE(editor->reader().quarantined().empty());
  harness.expect_sound();
}

TEST_F(LiveEditsTest, EpochsAreRetiredWhileTheCacheRuns) {
  CacheHarness harness(options(), store_);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    harness.feed(CacheHarness::tokens(seed, kSpan * kBlocks));
    harness.sync();
  }
  const std::unique_ptr<StoreEditor> editor = editor_of(harness);
  for (uint64_t seed = 2; seed <= 6; ++seed) {
    erase(*editor, items_of(harness, CacheHarness::tokens(seed, kSpan * kBlocks)));
  }
  const uint64_t before = harness.cache().stats().disk_bytes;
  const auto epochs = editor->reader().epochs();
  ASSERT_FALSE(epochs.empty());
  for (const DiskTier::EpochUse& epoch : epochs) {
    ASSERT_TRUE(editor->retire_epoch(epoch.epoch).ok());
  }
  ASSERT_TRUE(editor->compact().ok());
  EXPECT_LT(harness.cache().stats().disk_bytes, before);
  const auto first = CacheHarness::tokens(1, kSpan * kBlocks);
  harness.reopen();
  EXPECT_EQ(harness.feed(first).restored, first.size() - 1);
  harness.expect_sound();
}

}  // namespace
}  // namespace ember::testing
