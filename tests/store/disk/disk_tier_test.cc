// DiskTier: what was flushed comes back; the limit holds; everything read is proven.
#include "store/disk_tier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "tests/store/disk/disk_fill.h"
#include "tests/store/disk/disk_store_testing.h"

namespace ember {
namespace {

constexpr uint64_t kMiB = 1u << 20;

void put_ok(DiskTier& tier, MadeBlock& block) {
  Status status = tier.put(block.record, block.payloads);
  ASSERT_TRUE(status.ok()) << status.error().message;
}

// On a drive and in memory: with direct I/O and without.
class DiskTierPlaceTest : public testing::TestWithParam<ScratchFolder::Where> {};

TEST_P(DiskTierPlaceTest, WhatWasFlushedComesBackAfterReopening) {
  ScratchFolder folder(GetParam());
  DiskTierOptions options = small_tier(folder.sub("blocks"), 64 * kMiB);
  std::vector<MadeBlock> blocks;
  {
    auto tier = open_tier(options);
    for (uint64_t id = 0; id < 20; ++id) {
      blocks.push_back(make_block(id, 1 + id % 4, 20000));
      put_ok(*tier, blocks.back());
      EXPECT_EQ(read_error(*tier, blocks.back().record, blocks.back()), "");
    }
    std::pair<BlockHash, TouchRecord> touch{blocks[3].record.hash, {1234567, 8}};
    ASSERT_TRUE(tier->touch({&touch, 1}).ok());
    ASSERT_TRUE(tier->flush().ok());
  }
  auto tier = open_tier(options);
  Result<DiskTier::Listing> listing = tier->list();
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->records.size(), 20u);
  EXPECT_EQ(listing->unreadable, 0u);
  for (auto& [record, touch] : listing->records) {
    const MadeBlock& block = blocks[record.position];
    EXPECT_EQ(record, block.record);
    EXPECT_EQ(read_error(*tier, record, block), "");
    EXPECT_EQ(touch.hits, record.position == 3 ? 8u : 0u);
    EXPECT_EQ(touch.last_use_unix_us, record.position == 3 ? 1234567 : 0);
  }
  DiskTierStats stats = tier->stats();
  EXPECT_EQ(stats.blocks, 20u);
  EXPECT_EQ(stats.health, "ok");
  expect_counted_as_on_disk(*tier, options.directory);
  Result<std::vector<std::string>> files = tier->verify_files();
  ASSERT_TRUE(files.ok());
  EXPECT_TRUE(files->empty()) << files->front();
}

INSTANTIATE_TEST_SUITE_P(Places, DiskTierPlaceTest,
                         testing::Values(ScratchFolder::kAnywhere, ScratchFolder::kDrive));

// Shares of the walk, in any order and in small steps, show each record once.
TEST(DiskTierTest, SharesOfTheWalkShowEachRecordOnce) {
  ScratchFolder folder;
  DiskTierOptions options = small_tier(folder.sub("blocks"), 64 * kMiB);
  constexpr uint64_t kBlocks = 60;
  {
    auto tier = open_tier(options);
    for (uint64_t id = 0; id < kBlocks; ++id) {
      MadeBlock block = make_block(id, 1, 200);
      put_ok(*tier, block);
      const auto hits = static_cast<uint32_t>(id);
      const std::pair<BlockHash, TouchRecord> touch{block.record.hash, {1, hits}};
      ASSERT_TRUE(tier->touch({&touch, 1}).ok());
    }
    ASSERT_TRUE(tier->flush().ok());
  }
  options.scan_later = true;
  auto tier = open_tier(options);
  std::set<BlockHash> found;
  constexpr uint32_t kShares = DiskTier::kScanShares;
  std::array<DiskTier::ScanFrom, kShares> from;
  std::array<BlockHash, kShares> last;
  std::vector<uint32_t> open;
  for (uint32_t share = 0; share < kShares; ++share) open.push_back(from[share].share = share);
  while (!open.empty()) {
    std::rotate(open.begin(), open.begin() + 1, open.end());
    const uint32_t share = open.back();
    auto step = tier->scan(from[share], 2, [&](const auto& record, const auto& touch) {
      EXPECT_TRUE(found.insert(record.hash).second);
      EXPECT_EQ(touch.hits, record.position);
      EXPECT_EQ(record.hash.bytes[0] * kShares / 256, share);
      EXPECT_LT(std::exchange(last[share], record.hash), record.hash);
    });
    ASSERT_TRUE(step.ok());
    EXPECT_LE(step->found, 2u);
    from[share].cursor = step->cursor;
    if (step->done) open.pop_back();
  }
  EXPECT_EQ(found.size(), kBlocks);
  EXPECT_EQ(tier->stats().blocks, kBlocks);
}

TEST(DiskTierTest, ErasedBlockIsGoneAndAbsentIsNoError) {
  ScratchFolder folder;
  auto tier = open_tier(small_tier(folder.sub("blocks"), 16 * kMiB));
  MadeBlock block = make_block(1, 2, 1000);
  put_ok(*tier, block);
  EXPECT_TRUE(tier->read_record(block.record.hash)->has_value());
  ASSERT_TRUE(tier->erase(block.record.hash).ok());
  EXPECT_FALSE(tier->read_record(block.record.hash)->has_value());
  EXPECT_TRUE(tier->list()->records.empty());
  EXPECT_EQ(tier->stats().blocks, 0u);
  EXPECT_EQ(tier->stats().stored_bytes, 0u);
}

TEST(DiskTierTest, BlockPutAgainIsReplaced) {
  ScratchFolder folder;
  auto tier = open_tier(small_tier(folder.sub("blocks"), 16 * kMiB));
  MadeBlock first = make_block(1, 2, 1000);
  put_ok(*tier, first);
  ASSERT_TRUE(tier->flush().ok());
  MadeBlock second = make_block(2, 3, 2000);
  second.record.hash = first.record.hash;
  put_ok(*tier, second);
  BlockRecord now = **tier->read_record(first.record.hash);
  EXPECT_EQ(now, second.record);
  EXPECT_EQ(read_error(*tier, now, second), "");
  EXPECT_EQ(tier->stats().blocks, 1u);
  EXPECT_EQ(tier->stats().raw_bytes, 6000u);
}

TEST(DiskTierTest, FilesAreForTheOwnerAlone) {
  ScratchFolder folder;
  auto tier = open_tier(small_tier(folder.sub("blocks"), 16 * kMiB));
  MadeBlock block = make_block(1, 2, 1000);
  put_ok(*tier, block);
  ASSERT_TRUE(tier->flush().ok());
  namespace fs = std::filesystem;
  EXPECT_EQ(fs::status(folder.sub("blocks")).permissions(), fs::perms::owner_all);
  for (const std::string& file : files_below(folder.sub("blocks"))) {
    EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write)
        << file;
  }
}

TEST(DiskTierTest, EightMiBHoldThroughFiveTimesTheirSize) {
  FillRun({.limit_bytes = 8 * kMiB, .group_bytes = 40000}).run();
}

TEST(DiskTierTest, SixteenMiBHoldWithSomeBlocksKeptForEver) {
  FillRun({.limit_bytes = 16 * kMiB, .group_bytes = 100000, .keep_every = 23}).run();
}

TEST(DiskTierTest, FullStoreRefusesAndReadsOn) {
  ScratchFolder folder;
  auto tier = open_tier(small_tier(folder.sub("blocks"), 8 * kMiB));
  std::vector<MadeBlock> blocks;
  Status status;
  while (true) {
    blocks.push_back(make_block(blocks.size(), 2, 40000));
    status = tier->put(blocks.back().record, blocks.back().payloads);
    if (!status.ok()) break;
  }
  EXPECT_EQ(status.error().code, ErrorCode::kCapacity);
  blocks.pop_back();
  EXPECT_FALSE(tier->make_room(100000).ok());
  ASSERT_TRUE(tier->flush().ok());
  for (const MadeBlock& block : blocks) EXPECT_EQ(read_error(*tier, block.record, block), "");
}

TEST(DiskTierTest, EmptiedStoreGivesItsSpaceBack) {
  ScratchFolder folder;
  auto tier = open_tier(small_tier(folder.sub("blocks"), 8 * kMiB));
  uint64_t count = 0;
  for (;; ++count) {
    MadeBlock block = make_block(count, 1, 100000);
    if (!tier->put(block.record, block.payloads).ok()) break;
  }
  for (uint64_t id = 0; id < count; ++id) ASSERT_TRUE(tier->erase(made_hash(id)).ok());
  Status status = tier->make_room(6 * kMiB);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_LT(bytes_below(folder.sub("blocks")), kMiB);
}

TEST(DiskTierTest, TouchOfAnAbsentBlockLeavesNothing) {
  ScratchFolder folder;
  auto tier = open_tier(small_tier(folder.sub("blocks"), 8 * kMiB));
  std::pair<BlockHash, TouchRecord> touch{made_hash(1), {1, 1}};
  ASSERT_TRUE(tier->touch({&touch, 1}).ok());
  MadeBlock block = make_block(1, 1, 1000);
  put_ok(*tier, block);
  EXPECT_EQ(tier->list()->records[0].second.hits, 0u);
}

TEST(DiskTierTest, LoweredLimitIsReachedByRetiring) {
  ScratchFolder folder;
  DiskTierOptions options = small_tier(folder.sub("blocks"), 32 * kMiB);
  std::vector<MadeBlock> blocks;
  {
    auto tier = open_tier(options);
    for (uint64_t id = 0; id < 300; ++id) {
      blocks.push_back(make_block(id, 2, 40000));
      put_ok(*tier, blocks.back());
    }
    ASSERT_TRUE(tier->flush().ok());
  }
  options.limit_bytes = 8 * kMiB;
  auto tier = open_tier(options);
  EXPECT_FALSE(tier->has_room(1));
  size_t erased = 0;
  while (!tier->has_room(1) && erased < blocks.size()) {
    ASSERT_TRUE(tier->erase(blocks[erased++].record.hash).ok());
    if (erased % 10 == 0) static_cast<void>(tier->make_room(1));
  }
  EXPECT_TRUE(tier->has_room(1));
  EXPECT_LE(bytes_below(options.directory), options.limit_bytes);
  for (size_t i = erased; i < blocks.size(); ++i) {
    EXPECT_EQ(read_error(*tier, blocks[i].record, blocks[i]), "");
  }
}

TEST(DiskTierTest, ReadOnlyOpeningChangesNothing) {
  ScratchFolder folder;
  DiskTierOptions options = small_tier(folder.sub("blocks"), 16 * kMiB);
  MadeBlock block = make_block(1, 2, 1000);
  {
    auto tier = open_tier(options);
    put_ok(*tier, block);
  }
  auto before = files_below(options.directory);
  std::vector<std::filesystem::file_time_type> times;
  for (const auto& file : before) times.push_back(std::filesystem::last_write_time(file));
  {
    DiskTierOptions looking = options;
    looking.read_only = true;
    auto holder = open_tier(options);  // a running holder is no obstacle
    auto held = files_below(options.directory);
    auto tier = open_tier(looking);
    ASSERT_EQ(tier->list()->records.size(), 1u);
    EXPECT_EQ(read_error(*tier, block.record, block), "");
    EXPECT_TRUE(tier->verify_files()->empty());
    EXPECT_FALSE(tier->put(block.record, block.payloads).ok());
    EXPECT_FALSE(tier->erase(block.record.hash).ok());
    EXPECT_EQ(files_below(options.directory), held);
  }
  before = files_below(options.directory);
  options.read_only = true;
  open_tier(options).reset();
  EXPECT_EQ(files_below(options.directory), before);
  options.directory = folder.sub("absent");
  EXPECT_FALSE(DiskTier::open(options).ok());
  EXPECT_FALSE(std::filesystem::exists(options.directory));
}

TEST(DiskTierTest, ReadersGoOnWhileEpochsAreRetired) {
  ScratchFolder folder;
  auto tier = open_tier(small_tier(folder.sub("blocks"), 8 * kMiB));
  MadeBlock kept = make_block(0, 2, 40000);
  put_ok(*tier, kept);
  const BlockRecord known = kept.record;
  std::atomic<bool> done = false;
  std::atomic<int> reads = 0;
  std::thread reader([&] {
    while (!done || reads == 0) {
      ASSERT_EQ(read_error(*tier, known, kept), "");
      ++reads;
    }
  });
  for (uint64_t id = 1; id < 400; ++id) {
    MadeBlock block = make_block(id, 2, 40000);
    if (!tier->has_room(block.record.stored_bytes())) {
      Status room = tier->make_room(block.record.stored_bytes());
      EXPECT_TRUE(room.ok()) << room.error().message;
    }
    Status status = tier->put(block.record, block.payloads);
    EXPECT_TRUE(status.ok()) << status.error().message;
    EXPECT_TRUE(tier->erase(block.record.hash).ok());
  }
  done = true;
  reader.join();
  EXPECT_GT(tier->stats().retired_epochs, 0u);
}

TEST(DiskTierTest, DamagedGroupIsAnErrorAndTheOthersAreRight) {
  ScratchFolder folder;
  DiskTierOptions options = small_tier(folder.sub("blocks"), 16 * kMiB);
  std::vector<MadeBlock> blocks;
  {
    auto tier = open_tier(options);
    for (uint64_t id = 0; id < 4; ++id) {
      blocks.push_back(make_block(id, 1, 40000));
      put_ok(*tier, blocks.back());
    }
  }
  for (const std::string& file : files_below(options.directory)) {
    if (!file.ends_with(".blob")) continue;
    std::fstream blob(file, std::ios::in | std::ios::out | std::ios::binary);
    blob.seekp(45000);
    blob.put('!');
  }
  auto tier = open_tier(options);
  int damaged = 0;
  for (const MadeBlock& block : blocks) {
    std::vector<std::byte> raw(40000);
    Status status = tier->read_group(block.record, 0, raw);
    if (status.ok()) {
      EXPECT_EQ(raw, block.raw[0]);
      continue;
    }
    ++damaged;
    EXPECT_EQ(status.error().code, ErrorCode::kCorruption);
  }
  EXPECT_EQ(damaged, 1);
}

TEST(DiskTierTest, MissingBlobFileIsNamed) {
  ScratchFolder folder;
  DiskTierOptions options = small_tier(folder.sub("blocks"), 16 * kMiB);
  MadeBlock block = make_block(1, 1, 40000);
  {
    auto tier = open_tier(options);
    put_ok(*tier, block);
  }
  std::string lost;
  for (const std::string& file : files_below(options.directory)) {
    if (file.ends_with(".blob")) lost = file;
  }
  ASSERT_FALSE(lost.empty());
  std::filesystem::remove(lost);
  auto tier = open_tier(options);
  EXPECT_NE(read_error(*tier, block.record, block), "");
  Result<std::vector<std::string>> files = tier->verify_files();
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ(files->front(), std::filesystem::path(lost).filename().string());
}

}  // namespace
}  // namespace ember
