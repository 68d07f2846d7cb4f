// Taking another store's blocks into a running cache: they hit at once, are counted, and last.
#include "store/edit/live_intake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "store/codec.h"
#include "store/store_reader.h"
#include "tests/store/cache/cache_harness.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;
constexpr size_t kBlocks = 4;

struct Carried {
  BlockRecord record;
  std::vector<std::string> payloads;
  size_t parent = SIZE_MAX;  // in the list
};

class LiveIntakeTest : public ::testing::Test {
 protected:
  HarnessOptions options(const std::string& store) {
    HarnessOptions options;
    options.path = folder_ / store;
    options.sim_seed = 0;  // its own workers: an intake waits for them
    return options;
  }

  // What another store has computed of these prompts, parents before children.
  std::vector<Carried> computed_elsewhere(const std::vector<std::vector<TokenId>>& prompts,
                                          uint64_t numerics_build = 7) {
    const std::string store = "elsewhere" + std::to_string(++stores_);
    {
      HarnessOptions elsewhere = options(store);
      elsewhere.numerics_build = numerics_build;
      CacheHarness harness(elsewhere, memory_);
      for (const auto& prompt : prompts) harness.feed(prompt);
      harness.sync();
    }
    const auto reader = open_resting_store(folder_ / store, {});
    EXPECT_TRUE(reader.ok());
    std::vector<Carried> list;
    static_cast<void>((*reader)->walk([&list](const BlockSight& sight) {
      list.push_back({sight.record, {}, SIZE_MAX});
      return true;
    }));
    std::sort(list.begin(), list.end(), [](const Carried& a, const Carried& b) {
      return a.record.position < b.record.position;
    });
    std::map<BlockHash, size_t> numbers;
    for (size_t i = 0; i < list.size(); ++i) {
      BlockRecord& record = list[i].record;
      numbers[record.hash] = i;
      const auto parent = numbers.find(record.parent);
      if (parent != numbers.end()) list[i].parent = parent->second;
      for (uint32_t group = 0; group < record.groups.size(); ++group) {
        GroupEntry& entry = record.groups[group];
        std::vector<std::byte> raw(entry.raw_bytes);
        EXPECT_TRUE((*reader)->read_group(record, group, raw).ok());
        EncodedGroup coded =
            encode_group({record.streams[0].dtype, record.streams[0].row_values,
                          static_cast<uint32_t>(record.tokens.size())},
                         raw);
        entry.codec = coded.codec;
        entry.stored_bytes = static_cast<uint32_t>(coded.payload.size());
        list[i].payloads.push_back(std::move(coded.payload));
      }
    }
    return list;
  }

  static std::unique_ptr<RecordIntake> intake_of(CacheHarness& harness) {
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
    auto intake = open_live_intake(harness.cache(), std::move(calls), {});
    EXPECT_TRUE(intake.ok()) << intake.error().message;
    return intake.ok() ? std::move(*intake) : nullptr;
  }

  // Under the names that this store gives them.
  static Status take(RecordIntake& intake, std::vector<Carried> list) {
    for (Carried& one : list) {
      const BlockHasher hasher(intake.secret(), one.record.name_space, one.record.scope);
      one.record.parent =
          one.parent == SIZE_MAX ? hasher.root() : list[one.parent].record.hash;
      one.record.hash = hasher.next(one.record.parent, one.record.tokens);
      one.record.epoch = 0;
      EMBER_TRY(intake.put_block(one.record, one.payloads));
    }
    return intake.finish();
  }

  TempFolder folder_;
  MemoryStore memory_;
  int stores_ = 0;
  const std::vector<TokenId> tokens_ = CacheHarness::tokens(1, kSpan * kBlocks + 10);
  const std::vector<TokenId> others_ = CacheHarness::tokens(2, kSpan * kBlocks + 10);
};

TEST_F(LiveIntakeTest, WhatComesHitsAtOnceAndAfterReopening) {
  const std::vector<Carried> list = computed_elsewhere({tokens_, others_});
  ASSERT_EQ(list.size(), 2 * (kBlocks + 1));
  CacheHarness harness(options("store"), memory_);
  harness.feed(others_);
  {
    const std::unique_ptr<RecordIntake> intake = intake_of(harness);
    const Status took = take(*intake, list);
    ASSERT_TRUE(took.ok()) << took.error().message;
    EXPECT_EQ(intake->taken().fresh.blocks, kBlocks);
    EXPECT_EQ(intake->taken().fresh.tails, 1u);
    EXPECT_EQ(intake->taken().known.blocks, kBlocks);
    EXPECT_EQ(intake->taken().known.tails, 1u);
  }
  EXPECT_EQ(harness.cache().match(tokens_).tokens, tokens_.size() - 1);
  // The harness compares every row that is restored with what it computes itself.
  EXPECT_EQ(harness.feed(tokens_).restored, tokens_.size() - 1);
  EXPECT_EQ(harness.cache().stats().dedup_mismatch, 0u);
  EXPECT_EQ(harness.cache().stats().stranded, 0u);
  harness.expect_sound();
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens_).restored, tokens_.size() - 1);
  EXPECT_EQ(harness.feed(others_).restored, others_.size() - 1);
  harness.expect_sound();
}

TEST_F(LiveIntakeTest, ABlockWithoutItsParentIsRefusedAndNothingIsStranded) {
  std::vector<Carried> list = computed_elsewhere({tokens_});
  list.erase(list.begin() + 1);
  CacheHarness harness(options("store"), memory_);
  const std::unique_ptr<RecordIntake> intake = intake_of(harness);
  list.resize(2);
  list[1].parent = SIZE_MAX;
  Carried& orphan = list[1];
  const BlockHasher hasher(intake->secret(), orphan.record.name_space, orphan.record.scope);
  orphan.record.hash = hasher.next(orphan.record.parent, orphan.record.tokens);
  const auto batch = std::make_shared<IncomingBatch>();
  batch->blocks.push_back({orphan.record, orphan.payloads, false});
  const Status took = harness.await(harness.cache().live_edits().take_in(batch));
  ASSERT_FALSE(took.ok());
  EXPECT_EQ(took.error().code, ErrorCode::kBusy);
  EXPECT_EQ(harness.cache().stats().indexed_blocks, 0u);
  harness.expect_sound();
}

TEST_F(LiveIntakeTest, AnotherBuildsBlocksAreKeptAndNotUsed) {
  const std::vector<Carried> list = computed_elsewhere({tokens_}, 8);
  CacheHarness harness(options("store"), memory_);
  {
    const std::unique_ptr<RecordIntake> intake = intake_of(harness);
    ASSERT_TRUE(take(*intake, list).ok());
  }
  EXPECT_EQ(harness.cache().match(tokens_).tokens, 0u);
  EXPECT_EQ(harness.feed(tokens_).restored, 0u);
  harness.sync();
  EXPECT_EQ(harness.feed(tokens_).restored, tokens_.size() - 1);
  harness.expect_sound();
}

TEST_F(LiveIntakeTest, AnotherNamespacesBlocksAreForeignHereAndThereForTheirs) {
  const std::vector<Carried> list = computed_elsewhere({tokens_});
  HarnessOptions other = options("store");
  other.name_space = 2;
  {
    CacheHarness harness(other, memory_);
    const std::unique_ptr<RecordIntake> intake = intake_of(harness);
    ASSERT_TRUE(take(*intake, list).ok());
    EXPECT_EQ(harness.cache().match(tokens_).tokens, 0u);
    EXPECT_GE(harness.cache().stats().foreign_blocks, kBlocks);
    harness.expect_sound();
  }
  CacheHarness harness(options("store"), memory_);
  EXPECT_EQ(harness.feed(tokens_).restored, tokens_.size() - 1);
}

TEST_F(LiveIntakeTest, WhatDoesNotFitIsRefusedAndNothingGivesWay) {
  CacheHarness harness(options("store"), memory_);
  harness.feed(others_);
  harness.sync();
  const std::unique_ptr<RecordIntake> intake = intake_of(harness);
  const Status reserved = intake->reserve(uint64_t{64} << 20);
  ASSERT_FALSE(reserved.ok());
  EXPECT_EQ(reserved.error().code, ErrorCode::kCapacity);
  EXPECT_EQ(harness.cache().stats().evicted_blocks, 0u);
  EXPECT_EQ(harness.feed(others_).restored, others_.size() - 1);
  harness.expect_sound();
}

}  // namespace
}  // namespace ember::testing
