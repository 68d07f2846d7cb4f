// Each kind of damage in a real store: found, kept aside, healed by recompute, and hit again.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/store/cache/cache_harness.h"
#include "tests/store/disk/disk_store_testing.h"
#include "tests/store/disk/raw_database.h"

namespace ember::testing {
namespace {

namespace fs = std::filesystem;
constexpr size_t kSpan = 64;
constexpr size_t kLength = kSpan * 6 + 20;

// Of a store in clear and of an encrypted one.
class HealTest : public ::testing::TestWithParam<bool> {
 protected:
  // What Database writes is for its owner alone, as all of a store is.
  HealTest() : umask_(::umask(077)) {}
  ~HealTest() override { ::umask(umask_); }

  HarnessOptions options() const {
    HarnessOptions options;
    options.path = folder_.sub("store");
    options.encryption = {GetParam(), folder_.sub("master.key")};
    return options;
  }
  // The hashes of a chain's blocks, the tail's last.
  std::vector<BlockHash> fill() {
    CacheHarness harness(options(), unused_);
    harness.feed(tokens_);
    harness.sync();
    std::vector<BlockHash> hashes;
    for (const BlockCache::Row& row : harness.cache().rows()) hashes.push_back(row.hash);
    EXPECT_EQ(hashes.size(), 7u);
    return hashes;
  }

  // After damage of the block at `position`: a miss from there on, healed in this process and on
  // the disk. `kept`: whether there was something for the quarantine to keep.
  void expect_healed(size_t position, bool kept) {
    CacheHarness harness(options(), unused_);
    ASSERT_EQ(harness.cache().health().state, StoreState::kOk) << harness.cache().health().reason;
    EXPECT_EQ(harness.feed(tokens_).restored, position * kSpan);
    harness.sync();
    EXPECT_EQ(harness.cache().stats().holes, 0u);
    harness.cache().drop_tier(Tier::kDevice);
    harness.cache().drop_tier(Tier::kHost);
    EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1) << "its descendants are hit again";
    harness.expect_sound();
    EXPECT_EQ(harness.cache().quarantined().size(), kept ? 1u : 0u);
    if (kept) expect_kept_as_it_lay();
    EXPECT_LE(harness.cache().stats().disk_bytes, harness.cache().stats().disk_limit_bytes);
    harness.reopen();
    EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1);
    const BlockCacheStats stats = harness.cache().stats();
    EXPECT_EQ(stats.holes + stats.damaged_blocks + stats.unreadable_records, 0u);
  }

  // What is kept of an encrypted store is as sealed as it was.
  void expect_kept_as_it_lay() const {
    const std::string_view begins = GetParam() ? "EMS" : "EMBK";
    for (const std::string& path : files_below(folder_.sub("store/quarantine"))) {
      const Result<QuarantineEntry> kept = read_quarantine_file(path);
      ASSERT_TRUE(kept.ok()) << kept.error().message;
      EXPECT_TRUE(kept->found.record.starts_with(begins)) << path;
      EXPECT_EQ(kept->found.groups.empty(), kept->tail) << path;
      for (const std::optional<std::string>& group : kept->found.groups) {
        EXPECT_TRUE(!group || group->starts_with("EMS") == GetParam()) << path;
      }
    }
  }

  const mode_t umask_;
  ScratchFolder folder_;
  std::string blocks_ = folder_.sub("store/blocks");
  std::string conversations_ = folder_.sub("store/conversations");
  std::vector<TokenId> tokens_ = CacheHarness::tokens(1, kLength);
  MemoryStore unused_;
};

TEST_P(HealTest, DamagedRecord) {
  const auto hashes = fill();
  RawDatabase(blocks_).edit("default", "b" + std::string(hashes[2].view()), flip_middle);
  expect_healed(2, false);
}

// What lies below a record that could not be read at opening was kept out of the index. When one
// conversation has computed the block again, another one finds its own blocks below it.
TEST_P(HealTest, DescendantsOfADamagedRecordAreHitByOtherConversationsToo) {
  std::vector<TokenId> other = tokens_;
  for (size_t t = 2 * kSpan; t < other.size(); ++t) other[t] = static_cast<TokenId>(t);
  const auto hashes = fill();
  {
    CacheHarness harness(options(), unused_);
    harness.feed(other);
    harness.sync();
  }
  RawDatabase(blocks_).edit("default", "b" + std::string(hashes[1].view()), flip_middle);
  CacheHarness harness(options(), unused_);
  EXPECT_EQ(harness.feed(tokens_).restored, kSpan);
  harness.sync();
  EXPECT_GE(harness.feed(other).restored, 6 * kSpan) << "only its tail had to go";
  harness.sync();
  harness.expect_sound();
  harness.reopen();
  EXPECT_EQ(harness.feed(other).restored, kLength - 1);
  EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1);
}

TEST_P(HealTest, DamagedGroup) {
  const auto hashes = fill();
  RawDatabase(blocks_).edit("data", hashes[3].view(), flip_middle);
  expect_healed(3, true);
}

TEST_P(HealTest, MissingGroup) {
  const auto hashes = fill();
  RawDatabase(blocks_).edit("data", hashes[4].view(), [](std::string&) { return false; });
  expect_healed(4, true);
}

TEST_P(HealTest, GroupOfAnotherLength) {
  const auto hashes = fill();
  RawDatabase(blocks_).edit("data", hashes[1].view(), [](std::string& value) {
    value.resize(value.size() - 1);
    return true;
  });
  expect_healed(1, true);
}

TEST_P(HealTest, DamagedTail) {
  const auto hashes = fill();
  RawDatabase(conversations_).edit("tails", hashes[6].view(), flip_middle);
  expect_healed(6, false);
}

TEST_P(HealTest, DamagedTableOfMetadata) {
  fill();
  for (const std::string& path : files_below(blocks_)) {
    if (!path.ends_with(".sst")) continue;
    std::ifstream in(path, std::ios::binary);
    std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const size_t at = all.find(GetParam() ? "EMS" : "EMBK");
    if (at == std::string::npos) continue;
    all[at + 60] = static_cast<char>(all[at + 60] ^ 1);
    std::ofstream(path, std::ios::binary) << all;
  }
  CacheHarness harness(options(), unused_);
  const bool usable = harness.cache().health().state != StoreState::kUnusable;
  EXPECT_LT(harness.feed(tokens_).restored, kLength - 1);
  harness.sync();
  if (!usable) {
    EXPECT_NE(harness.cache().health().reason.find("move that folder away"), std::string::npos)
        << harness.cache().health().reason;
    EXPECT_NE(harness.cache().conversations(), nullptr) << "what people said can be read";
    return;
  }
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1);
}

TEST_P(HealTest, LostBlobFileIsDamageAndHealed) {
  const auto hashes = fill();
  for (const std::string& path : files_below(blocks_)) {
    if (path.ends_with(".blob")) fs::remove(path);
  }
  CacheHarness harness(options(), unused_);
  EXPECT_EQ(harness.feed(tokens_).restored, 0u);
  // Blocks whose reads were given up with the first miss are found damaged by a later turn.
  for (int turn = 0; turn < 3; ++turn) {
    harness.drain();
    harness.sync();
    harness.reopen();
    EXPECT_NE(harness.cache().health().state, StoreState::kUnusable);
    harness.feed(tokens_);
  }
  harness.drain();
  harness.reopen();
  EXPECT_EQ(harness.feed(tokens_).restored, kLength - 1);
}

TEST_P(HealTest, ScrubberFindsDamageOnTheDriveAndGoesOnAfterReopening) {
  const auto hashes = fill();
  RawDatabase(blocks_).edit("data", hashes[3].view(), flip_middle);
  ManualClock clock;
  HarnessOptions scrubbing = options();
  scrubbing.clock = &clock;
  scrubbing.scrub_bytes_per_second = 1500;  // about a block a second
  CacheHarness harness(scrubbing, unused_);
  uint64_t blocks = 0;
  for (int second = 0; second < 60; ++second) {
    for (int tenth = 0; tenth < 10; ++tenth) {
      clock.advance_us(100'000);
      harness.cache().tick();
      for (int i = 0; i < 4; ++i) harness.step();
    }
    const BlockCacheStats stats = harness.cache().stats();
    if (second % 4 != 3 && stats.scrub_passes == 0) continue;
    blocks += stats.scrubbed_blocks;
    if (stats.scrub_passes > 0) break;
    harness.reopen();
  }
  EXPECT_EQ(harness.cache().stats().scrub_passes, 1u);
  EXPECT_GE(blocks, 5u);
  EXPECT_LE(blocks, 7u) << "a pass goes on where it was";
  EXPECT_EQ(harness.cache().quarantined().size(), 1u);
  EXPECT_TRUE(fs::exists(folder_.sub("store/SCRUB")));
  harness.close();
  expect_healed(3, true);
}

INSTANTIATE_TEST_SUITE_P(Form, HealTest, ::testing::Bool(),
                         [](const auto& form) { return form.param ? "Encrypted" : "Clear"; });

}  // namespace
}  // namespace ember::testing
