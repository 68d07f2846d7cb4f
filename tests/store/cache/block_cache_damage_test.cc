// What is proven wrong, what is only unread, what becomes of either, and what the scrubber finds.
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "tests/store/cache/cache_harness.h"
#include "tests/store/disk/disk_store_testing.h"

namespace ember::testing {
namespace {

constexpr size_t kSpan = 64;
constexpr size_t kLength = kSpan * 6 + 20;
constexpr int64_t kSecond = 1'000'000;

class BlockDamageTest : public ::testing::Test {
 protected:
  HarnessOptions options() {
    HarnessOptions options;
    options.quarantine = folder_.sub("quarantine");
    return options;
  }
  // A store that holds one conversation of six blocks and a tail.
  void fill() {
    CacheHarness harness({}, store_);
    harness.feed(tokens_);
    harness.sync();
  }

  ScratchFolder folder_;
  MemoryStore store_;
  std::vector<TokenId> tokens_ = CacheHarness::tokens(1, kLength);
};

TEST_F(BlockDamageTest, ReadThatFailsOnceIsReadAgain) {
  fill();
  for (ErrorCode code : {ErrorCode::kIo, ErrorCode::kCorruption}) {
    CacheHarness harness(options(), store_);
    const BlockHash bad = harness.hash_of(tokens_, 4);
    int failures = 1;
    store_.before_read = [&](const BlockHash& hash, uint32_t group) -> Status {
      if (hash == bad && group == 2 && failures-- > 0) return Error{code, "the weather"};
      return {};
    };
    EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1);
    const BlockCacheStats stats = harness.cache().stats();
    EXPECT_EQ(stats.read_retries, 1u);
    EXPECT_EQ(stats.read_errors + stats.damaged_blocks + stats.holes, 0u);
    EXPECT_EQ(stats.quarantined_records, 0u);
  }
}

TEST_F(BlockDamageTest, ErrorThatStaysIsAMissAndNoHoleAndTheRecordIsWrittenAgain) {
  fill();
  CacheHarness harness(options(), store_);
  const BlockHash bad = harness.hash_of(tokens_, 4);
  store_.before_read = [&](const BlockHash& hash, uint32_t) -> Status {
    if (hash == bad) return Error{ErrorCode::kIo, "the weather"};
    return {};
  };
  int written = 0;
  store_.before_put = [&](const BlockHash& hash) -> Status {
    written += hash == bad ? 1 : 0;
    return {};
  };
  const auto outcome = harness.feed(tokens_);
  EXPECT_EQ(outcome.restored, 4 * kSpan);
  EXPECT_EQ(outcome.report.damaged_blocks, 0u);
  harness.sync();
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_EQ(stats.damaged_blocks + stats.holes + stats.quarantined_records, 0u);
  EXPECT_EQ(stats.read_errors, 1u);
  EXPECT_EQ(written, 1) << "what was computed again is stored where it can be read";
  harness.expect_sound();
  store_.before_read = nullptr;
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1);
}

TEST_F(BlockDamageTest, WrongBytesAreKeptAsideAsTheyWereFound) {
  fill();
  CacheHarness harness(options(), store_);
  const BlockHash bad = harness.hash_of(tokens_, 3);
  store_.corrupt(bad, 1);
  const std::string payload = store_.blocks.at(bad).payloads[1];
  EXPECT_EQ(harness.feed(tokens_).restored, 3 * kSpan);
  harness.sync();
  const std::vector<QuarantineRow> rows = harness.cache().quarantined();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].hash, bad);
  EXPECT_EQ(rows[0].position, 3u);
  EXPECT_NE(rows[0].reason.find("checksum"), std::string::npos) << rows[0].reason;
  const auto kept = read_quarantine_file(folder_.sub("quarantine") + "/" + rows[0].file);
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  EXPECT_EQ(kept->found.groups.at(1), payload);
  EXPECT_EQ(harness.cache().stats().quarantined_records, 1u);
  EXPECT_EQ(harness.cache().stats().holes, 0u) << "healed";
  harness.cache().drop_tier(Tier::kDevice);
  harness.cache().drop_tier(Tier::kHost);
  EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1) << "descendants are hit again";
}

TEST_F(BlockDamageTest, WrongRecordMetByACommitIsHealedFromTheCopyThatWasComputed) {
  fill();
  CacheHarness harness(options(), store_);
  const BlockHash bad = harness.hash_of(tokens_, 0);
  store_.blocks.at(bad).record.parent.bytes[0] ^= 1;
  harness.feed(tokens_, true, false);  // computes all of it
  harness.drain();                     // the comparison too
  EXPECT_EQ(harness.cache().stats().dedup_mismatch, 0u);
  EXPECT_EQ(harness.cache().stats().damaged_blocks, 1u);
  EXPECT_EQ(harness.cache().stats().holes, 0u);
  harness.sync();
  harness.expect_sound();
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1);
}

// Reads that the first miss gave up end later, in any order: a child may be found damaged before
// its parent is, and both after they were computed again.
TEST_F(BlockDamageTest, DamageOfAWholeChainIsHealedInWhateverOrderItIsFound) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    fill();
    HarnessOptions seeded = options();
    seeded.sim_seed = seed;
    CacheHarness harness(seeded, store_);
    for (size_t position = 0; position < 6; ++position) {
      store_.corrupt(harness.hash_of(tokens_, position), 0);
    }
    EXPECT_EQ(harness.feed(tokens_).restored, 0u);
    harness.drain();
    harness.sync();
    EXPECT_EQ(harness.cache().stats().offload_failures, 0u);
    EXPECT_EQ(harness.cache().stats().holes, 0u);
    harness.expect_sound();
    harness.reopen();
    EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1) << "seed " << seed;
  }
}

TEST_F(BlockDamageTest, BlocksThatTheDiskCouldNotRewriteBecomeHoles) {
  fill();
  CacheHarness harness(options(), store_);
  const BlockHash lost = harness.hash_of(tokens_, 1);
  store_.lost.push_back(lost);
  store_.blocks.at(lost).payloads.clear();
  store_.blocks.at(lost).payloads.resize(3);
  harness.cache().tick();
  EXPECT_EQ(harness.cache().stats().holes, 1u);
  EXPECT_EQ(harness.cache().stats().damaged_blocks, 1u);
  EXPECT_EQ(harness.feed(tokens_).restored, kSpan);
  harness.sync();
  EXPECT_EQ(harness.cache().stats().holes, 0u);
  harness.expect_sound();
}

class ScrubTest : public BlockDamageTest {
 protected:
  HarnessOptions scrubbing(uint64_t rate = 8u << 20) {
    HarnessOptions wanted = options();
    wanted.clock = &clock_;
    wanted.scrub_bytes_per_second = rate;
    return wanted;
  }
  // Lets `seconds` pass, in tenths.
  void pass(CacheHarness& harness, int seconds) {
    for (int tenth = 0; tenth < 10 * seconds; ++tenth) {
      clock_.advance_us(kSecond / 10);
      harness.cache().tick();
      for (int i = 0; i < 4; ++i) harness.step();
    }
  }

  ManualClock clock_;
};

TEST_F(ScrubTest, FindsDamageBeforeARequestMeetsIt) {
  fill();
  clock_.advance_us(kSecond);
  CacheHarness harness(scrubbing(), store_);
  const BlockHash bad = harness.hash_of(tokens_, 4);
  store_.corrupt(bad, 2);
  pass(harness, 2);
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_EQ(stats.scrubbed_blocks, 5u);
  EXPECT_EQ(stats.scrub_damaged, 1u);
  EXPECT_EQ(stats.scrub_passes, 1u);
  EXPECT_GT(stats.last_scrub_unix_us, 0);
  EXPECT_EQ(stats.holes, 1u);
  EXPECT_EQ(stats.quarantined_records, 1u);
  EXPECT_EQ(harness.cache().match(tokens_).tokens, 4 * kSpan) << "known before any read";
  harness.feed(tokens_);
  harness.sync();
  EXPECT_EQ(harness.cache().stats().holes, 0u);
  harness.expect_sound();
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1);
}

TEST_F(ScrubTest, HealsFromRamWhatItFinds) {
  clock_.advance_us(kSecond);
  CacheHarness harness(scrubbing(), store_);
  harness.feed(tokens_);
  harness.sync();
  store_.corrupt(harness.hash_of(tokens_, 4), 0);
  pass(harness, 2);
  harness.sync();
  EXPECT_EQ(harness.cache().stats().scrub_damaged, 1u);
  EXPECT_EQ(harness.cache().stats().holes, 0u);
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1) << "without being computed again";
}

TEST_F(ScrubTest, KeepsToItsRateAndItsInterval) {
  constexpr uint64_t kRate = 2000;
  fill();
  clock_.advance_us(kSecond);
  CacheHarness harness(scrubbing(kRate), store_);
  const uint64_t block = store_.stored_bytes() / 6 + 1024;
  for (uint64_t second = 1; second <= 60; ++second) {
    pass(harness, 1);
    ASSERT_LE(harness.cache().stats().scrubbed_bytes, second * kRate + block);
  }
  EXPECT_EQ(harness.cache().stats().scrub_passes, 1u) << "the next one is not due before tomorrow";
  EXPECT_EQ(harness.cache().stats().scrubbed_blocks, 6u);
  clock_.advance_us(int64_t{25} * 3600 * kSecond);
  pass(harness, 60);
  EXPECT_EQ(harness.cache().stats().scrub_passes, 2u);
}

TEST_F(ScrubTest, WaitsForRestores) {
  fill();
  clock_.advance_us(kSecond);
  CacheHarness harness(scrubbing(), store_);
  auto chain = harness.open_chain(tokens_, tokens_.size() - 1);
  for (int i = 0; i < 20; ++i) {
    clock_.advance_us(kSecond);
    harness.cache().tick();  // the restore makes no progress: nothing is stepped
  }
  EXPECT_EQ(harness.device().outstanding(), 7u + 1) << "reads and a poison copy, no slice";
  harness.wait_ready(*chain);
  harness.expect_rows(*chain, tokens_, chain->length());
  chain.reset();
  pass(harness, 2);
  EXPECT_EQ(harness.cache().stats().scrubbed_blocks, 6u);
}

TEST_F(ScrubTest, ErrorsOfTheDriveProveNothing) {
  fill();
  clock_.advance_us(kSecond);
  store_.before_read = [](const BlockHash&, uint32_t) -> Status {
    return Error{ErrorCode::kIo, "the weather"};
  };
  CacheHarness harness(scrubbing(), store_);
  pass(harness, 2);
  const BlockCacheStats stats = harness.cache().stats();
  EXPECT_EQ(stats.scrub_damaged + stats.holes + stats.quarantined_records, 0u);
  EXPECT_EQ(stats.read_errors, 6u);
  store_.before_read = nullptr;
}

TEST(ScrubMarkTest, AnyChangedByteMeansThatAPassBeginsAnew) {
  ScrubMark mark;
  mark.in_pass = true;
  mark.after = made_hash(1);
  mark.last_ended_unix_us = 77;
  mark.passes = 3;
  const std::string bytes = encode_scrub_mark(mark);
  EXPECT_EQ(decode_scrub_mark(bytes), mark);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    EXPECT_EQ(decode_scrub_mark(changed), std::nullopt);
    EXPECT_EQ(decode_scrub_mark(bytes.substr(0, at)), std::nullopt);
  }
}

}  // namespace
}  // namespace ember::testing
