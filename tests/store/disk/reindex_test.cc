// Rows beside the records, and records themselves, that are not as they must be although RocksDB's
// checksums agree: found by looking, mended once, and then there is nothing more to find.
#include <gtest/gtest.h>

#include "store/disk/disk_format.h"
#include "tests/store/disk/disk_store_testing.h"
#include "tests/store/disk/raw_database.h"

namespace ember {
namespace {

constexpr uint64_t kBlocks = 12;
constexpr uint64_t kUnreadable = 3;  // ids of blocks: whose record is damaged,
constexpr uint64_t kWorn = 5;        // whose touch record is
constexpr uint32_t kNoSuchEpoch = 77;

class ReindexTest : public ::testing::Test {
 protected:
  ReindexTest() : options_(small_tier(folder_.sub("blocks"), 64u << 20)) {
    options_.set_aside = [this](const QuarantineEntry& entry) { aside_.push_back(entry.hash); };
    auto tier = open_tier(options_);
    std::vector<std::pair<BlockHash, TouchRecord>> touches;
    for (uint64_t id = 0; id < kBlocks; ++id) {
      blocks_.push_back(make_block(id, 2, 4096));
      MadeBlock& block = blocks_.back();
      EXPECT_TRUE(tier->put(block.record, block.payloads).ok());
      touches.emplace_back(block.record.hash, TouchRecord{1'000'000, 2});
    }
    EXPECT_TRUE(tier->touch(touches).ok());
    EXPECT_TRUE(tier->flush().ok());
  }
  std::unique_ptr<RawDatabase> raw() const {
    return std::make_unique<RawDatabase>(options_.directory);
  }
  const BlockHash& hash(uint64_t id) const { return blocks_[id].record.hash; }

  // Looking tells what mending does; the second time there is nothing.
  DiskTier::Reindexed mend() {
    auto tier = open_tier(options_);
    const Result<DiskTier::Reindexed> looked = tier->reindex(true);
    EXPECT_TRUE(looked.ok() && aside_.empty());
    const Result<DiskTier::Reindexed> mended = tier->reindex(false);
    EXPECT_TRUE(mended.ok()) << mended.error().message;
    expect_same(*looked, *mended);
    expect_same(*tier->reindex(true), {});
    tier = nullptr;
    tier = open_tier(options_);
    expect_same(*tier->reindex(true), {});
    EXPECT_EQ(tier->stats().health, "ok");
    for (uint64_t id = 0; id < kBlocks; ++id) {
      const auto record = tier->read_record(hash(id));
      EXPECT_TRUE(record.ok()) << record.error().message;
      if (!record.ok() || !*record) continue;
      EXPECT_EQ(read_error(*tier, **record, blocks_[id]), "");
    }
    return *mended;
  }
  static void expect_same(const DiskTier::Reindexed& a, const DiskTier::Reindexed& b) {
    EXPECT_EQ(a.epochs, b.epochs);
    EXPECT_EQ(a.unreadable, b.unreadable);
    EXPECT_EQ(a.touches, b.touches);
  }
  uint64_t records() {
    auto tier = open_tier(options_);
    return tier->list()->records.size();
  }

  ScratchFolder folder_;
  DiskTierOptions options_;
  std::vector<MadeBlock> blocks_;
  std::vector<BlockHash> aside_;
};

TEST_F(ReindexTest, NothingIsFoundInAWholeIndex) {
  expect_same(mend(), {});
  EXPECT_EQ(records(), kBlocks);
}

TEST_F(ReindexTest, ARecordThatCannotBeReadIsSetAsideAndItsUsesGoWithIt) {
  raw()->edit("default", block_key(hash(kUnreadable)), flip_middle);
  expect_same(mend(), {.epochs = 0, .unreadable = 1, .touches = 1});
  EXPECT_EQ(aside_, std::vector<BlockHash>{hash(kUnreadable)});
  EXPECT_EQ(records(), kBlocks - 1);
}

TEST_F(ReindexTest, UsesThatCannotBeReadOrBelongToNothingGo) {
  const std::string nobody = touch_key(made_hash(kBlocks + 1));
  {
    const auto database = raw();
    database->edit("default", touch_key(hash(kWorn)), flip_middle);
    database->put("default", nobody, encode_touch(nobody, {1'000'000, 1}));
    database->put("default", "t", "short");
  }
  expect_same(mend(), {.epochs = 0, .unreadable = 0, .touches = 3});
  EXPECT_EQ(records(), kBlocks);
}

TEST_F(ReindexTest, RowsOfEpochsAreWrittenAnewWhateverBecameOfThem) {
  using Change = bool (*)(std::string&);
  const Change changes[] = {flip_middle, [](std::string&) { return false; },
                            [](std::string& value) {
                              value.clear();
                              return true;
                            }};
  for (const Change change : changes) {
    raw()->edit("default", epoch_key(1), change);
    expect_same(mend(), {.epochs = 1, .unreadable = 0, .touches = 0});
    EXPECT_EQ(records(), kBlocks);
  }
  // One that no block belongs to.
  raw()->put("default", epoch_key(kNoSuchEpoch), "rubbish");
  expect_same(mend(), {.epochs = 1, .unreadable = 0, .touches = 0});
}

TEST_F(ReindexTest, KeysOfNoBlockGo) {
  {
    const auto database = raw();
    database->put("default", "b", "short");
    database->put("default", "b" + std::string(40, 'x'), "long");
  }
  expect_same(mend(), {.epochs = 0, .unreadable = 2, .touches = 0});
  EXPECT_TRUE(aside_.empty());
  EXPECT_EQ(records(), kBlocks);
}

}  // namespace
}  // namespace ember
