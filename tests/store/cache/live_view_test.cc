// Looking at a running cache: where blocks are, what no disk has yet, what waits for a flush.
#include "store/live_view.h"

#include <gtest/gtest.h>

#include <map>

#include "store/inspect/live_store.h"
#include "tests/store/cache/cache_harness.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;
constexpr size_t kBlocks = 4;

class LiveViewTest : public ::testing::Test {
 protected:
  HarnessOptions options(const std::string& path = {}) {
    HarnessOptions options;
    options.clock = &clock_;  // stands still: nothing is flushed for its age
    options.path = path;
    return options;
  }
  std::vector<BlockHash> hashes(CacheHarness& harness) const {
    std::vector<BlockHash> hashes;
    for (size_t i = 0; i < kBlocks; ++i) hashes.push_back(harness.hash_of(tokens_, i));
    return hashes;
  }
  static std::vector<LiveView::Unstored> all_unstored(const LiveView& view, uint32_t page_slots) {
    std::vector<LiveView::Unstored> all;
    LiveView::UnstoredPage page;
    do {
      page = view.unstored(page.next, page_slots);
      EXPECT_LE(page.blocks.size(), page_slots);
      for (LiveView::Unstored& block : page.blocks) all.push_back(std::move(block));
    } while (!page.done);
    return all;
  }

  ManualClock clock_;
  MemoryStore store_;
  const std::vector<TokenId> tokens_ = CacheHarness::tokens(1, kSpan * kBlocks + 10);
};

TEST_F(LiveViewTest, BlocksAreUnstoredThenUnflushedThenDurable) {
  CacheHarness harness(options(), store_);
  const LiveView& view = harness.cache().live_view();
  std::unique_ptr<Chain> chain = harness.open_chain(tokens_, 0);
  harness.wait_ready(*chain);
  harness.compute(*chain, tokens_);
  const std::vector<LiveView::Unstored> unstored = all_unstored(view, 5);
  ASSERT_EQ(unstored.size(), kBlocks);
  for (const LiveView::Unstored& block : unstored) {
    EXPECT_TRUE(block.place.in[static_cast<size_t>(Tier::kDevice)]);
    EXPECT_FALSE(block.place.durable);
    EXPECT_EQ(block.record.tokens.size(), kSpan);
    EXPECT_EQ(view.read_unstored(block.record.hash, 0, {}).error().code, ErrorCode::kBusy);
  }
  harness.drain();
  EXPECT_TRUE(all_unstored(view, 1).empty());
  EXPECT_FALSE(view.find_unstored(hashes(harness)[0]).has_value());
  for (const LiveView::Place& place : view.places(hashes(harness))) {
    EXPECT_TRUE(place.known && place.in[static_cast<size_t>(Tier::kDisk)]);
    EXPECT_FALSE(place.durable);
    EXPECT_EQ(place.users, 1u);
  }
  harness.sync();
  chain.reset();
  harness.drain();
  for (const LiveView::Place& place : view.places(hashes(harness))) {
    EXPECT_TRUE(place.durable);
    EXPECT_EQ(place.users, 0u);
    EXPECT_EQ(place.pinned_until_unix_us, 0);
  }
}

TEST_F(LiveViewTest, PinsAreToldByTheClockOnTheWallAndStrangersAreUnknown) {
  CacheHarness harness(options(), store_);
  harness.feed(tokens_);
  harness.sync();
  clock_.advance_us(1000);
  ASSERT_TRUE(harness.cache().pin(tokens_, 5000).ok());
  std::vector<BlockHash> asked = hashes(harness);
  asked.push_back(BlockHash{});
  const auto places = harness.cache().live_view().places(asked);
  ASSERT_EQ(places.size(), kBlocks + 1);
  EXPECT_EQ(places[0].pinned_until_unix_us, clock_.unix_us() + 5000);
  EXPECT_FALSE(places.back().known);
}

TEST_F(LiveViewTest, UnstoredBytesAreThoseThatTheDiskGetsLater) {
  CacheHarness harness(options(), store_);
  const LiveView& view = harness.cache().live_view();
  std::unique_ptr<Chain> chain = harness.open_chain(tokens_, 0);
  harness.wait_ready(*chain);
  harness.compute(*chain, tokens_);
  harness.cache().commit_tail(*chain);
  std::map<BlockHash, std::vector<std::byte>> early;
  for (int step = 0; step < 1000 && harness.cache().busy(); ++step) {
    for (const LiveView::Unstored& block : all_unstored(view, 100)) {
      std::vector<std::byte> raw(block.record.groups[1].raw_bytes);
      if (view.read_unstored(block.record.hash, 1, raw).ok()) early[block.record.hash] = raw;
    }
    harness.step();
  }
  EXPECT_FALSE(early.empty());
  harness.sync();
  for (const auto& [hash, bytes] : early) {
    const auto record = view.parts().disk->read_record(hash);
    ASSERT_TRUE(record.ok());
    if (!*record) continue;  // the tail: it is with the conversations
    std::vector<std::byte> raw((*record)->groups[1].raw_bytes);
    ASSERT_TRUE(view.parts().disk->read_group(**record, 1, raw).ok());
    EXPECT_EQ(raw, bytes);
  }
}

TEST_F(LiveViewTest, ReaderOfAnOpenStoreShowsEachBlockOnceWhereverItIs) {
  const TempFolder folder;
  CacheHarness harness(options(folder / "store"), store_);
  harness.feed(tokens_);
  harness.sync();
  const auto later = CacheHarness::tokens(2, kSpan * 2);
  std::unique_ptr<Chain> chain = harness.open_chain(later, 0);
  harness.wait_ready(*chain);
  harness.compute(*chain, later);
  auto reader = open_live_store(harness.cache(), [](const std::function<void()>& work) {
    work();
    return Status();
  });
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  std::map<BlockHash, int> seen;
  size_t durable = 0;
  size_t leased = 0;
  BlockHash unstored;
  const auto walked = (*reader)->walk([&](const BlockSight& sight) {
    ++seen[sight.record.hash];
    durable += sight.place.durable ? 1u : 0u;
    leased += sight.place.leases > 0 ? 1u : 0u;
    if (!sight.place.durable) unstored = sight.record.hash;
    return true;
  });
  ASSERT_TRUE(walked.ok());
  EXPECT_EQ(walked->blocks, kBlocks + 2);
  EXPECT_EQ(walked->tails, 1u);
  EXPECT_EQ(durable, kBlocks + 1);
  EXPECT_EQ(leased, 2u);
  for (const auto& [hash, times] : seen) EXPECT_EQ(times, 1);
  EXPECT_TRUE((*reader)->facts().live);
  EXPECT_EQ((*reader)->facts().health, "ok");
  EXPECT_EQ((*reader)->live_stats()->committed_blocks, kBlocks + 2);
  const auto record = (*reader)->record(unstored);
  ASSERT_TRUE(record.ok() && record->has_value());
  EXPECT_EQ((*record)->tokens.size(), kSpan);
}

TEST_F(LiveViewTest, ReaderOfAnOpenStoreKnowsUsesThatTheDiskHasNotHeardOf) {
  const TempFolder folder;
  CacheHarness harness(options(folder / "store"), store_);
  harness.feed(tokens_);
  harness.sync();
  clock_.advance_us(5'000'000);
  const int64_t now_us = clock_.unix_us();
  harness.feed(tokens_);
  auto reader = open_live_store(harness.cache(), [](const std::function<void()>& work) {
    work();
    return Status();
  });
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  size_t seen = 0;
  ASSERT_TRUE((*reader)
                  ->walk([&](const BlockSight& sight) {
                    if (sight.record.tail) return true;
                    ++seen;
                    EXPECT_EQ(sight.touch.hits, 1u);
                    EXPECT_GE(sight.touch.last_use_unix_us, now_us);
                    return true;
                  })
                  .ok());
  EXPECT_EQ(seen, kBlocks);
}

TEST_F(LiveViewTest, ReaderOfACacheThatEndsSaysSoAndDoesNotHang) {
  const TempFolder folder;
  CacheHarness harness(options(folder / "store"), store_);
  harness.feed(tokens_);
  harness.sync();
  auto reader = open_live_store(harness.cache(), [](const std::function<void()>&) {
    return Status(ErrorCode::kCancelled, "it is ending");
  });
  ASSERT_TRUE(reader.ok());
  EXPECT_NE((*reader)->facts().health.find("ending"), std::string::npos);
  EXPECT_FALSE((*reader)->live_stats().has_value());
  const auto walked = (*reader)->walk([](const BlockSight&) { return true; });
  ASSERT_FALSE(walked.ok()) << "a part of the blocks is not taken for all of them";
  EXPECT_EQ(walked.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace ember::testing
