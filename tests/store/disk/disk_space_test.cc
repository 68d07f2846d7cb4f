// The drive below the disk tier: cap, floor and ballast as seen from outside; a drive that others
// fill to the last byte, as injected and in earnest.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <fstream>
#include <map>
#include <set>

#include "store/disk/disk_tier_impl.h"
#include "tests/store/disk/disk_store_testing.h"
#include "tests/store/disk/small_drive.h"

namespace ember {
namespace {

constexpr uint64_t kMiB = 1u << 20;

DiskTierOptions tier_with_ballast(const std::string& directory, uint64_t limit_bytes) {
  DiskTierOptions options = small_tier(directory, limit_bytes);
  options.ballast_bytes = plan_epochs(limit_bytes).ballast_bytes;
  options.free_floor_bytes = 0;
  return options;
}

std::unique_ptr<DiskTier> open_on(const DiskTierOptions& options,
                                  const std::shared_ptr<DriveSize>& drive) {
  Result<std::unique_ptr<DiskTier>> tier =
      DiskTierImpl::open(options, std::make_shared<SmallDrive>(drive));
  EXPECT_TRUE(tier.ok()) << tier.error().message;
  return tier.ok() ? std::move(*tier) : nullptr;
}

// A walk is no single moment: a file that goes and its successor may both be met. What stays above
// the limit in three walks is above it.
uint64_t seen_from_outside(const std::string& directory, uint64_t limit_bytes) {
  uint64_t bytes = bytes_below(directory);
  for (int look = 0; look < 2 && bytes > limit_bytes; ++look) bytes = bytes_below(directory);
  return bytes;
}

// Blocks of one conversation each, below one system prompt, as the cache would write them.
class Library {
 public:
  explicit Library(uint32_t group_bytes) : group_bytes_(group_bytes) {}

  Status put_next(DiskTier& tier) {
    MadeBlock made = make_block(next_, 2, group_bytes_);
    made.record.position = next_ == 0 ? 0 : 1;
    made.record.parent = made_hash(next_ == 0 ? uint64_t{1} << 50 : 0);
    const Status status = tier.put(made.record, made.payloads);
    if (status.ok()) blocks_.emplace(next_++, std::move(made));
    return status;
  }
  // Every block reads back right, or was told as lost.
  void expect_right(DiskTier& tier) {
    for (const BlockHash& hash : tier.take_lost()) lost_.insert(hash);
    for (const auto& [id, made] : blocks_) {
      const std::string error = read_error(tier, made.record, made);
      EXPECT_EQ(error.empty(), !lost_.contains(made.record.hash)) << id << ": " << error;
    }
  }
  void forget_lost(DiskTier& tier) {
    for (const BlockHash& hash : tier.take_lost()) lost_.insert(hash);
    std::erase_if(blocks_,
                  [&](const auto& entry) { return lost_.contains(made_hash(entry.first)); });
  }
  size_t size() const { return blocks_.size(); }
  const std::set<BlockHash>& lost() const { return lost_; }

 private:
  uint32_t group_bytes_;
  uint64_t next_ = 0;
  std::map<uint64_t, MadeBlock> blocks_;
  std::set<BlockHash> lost_;
};

// Puts until `flushed` blocks went through; what is refused for the moment is tried again.
void write_through(DiskTier& tier, Library& library, int count) {
  for (int done = 0, tries = 0; done < count && tries < 3 * count; ++tries) {
    const Status put = library.put_next(tier);
    if (put.ok()) ++done;
    if (!put.ok() || done % 4 == 0) static_cast<void>(tier.flush());
    if (!put.ok()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST(DiskSpaceTest, CapHoldsThroughChurnAndRestarts) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Prng prng(seed);
    ScratchFolder folder;
    const uint64_t limit = (5 + prng.below(4)) * kMiB;
    const DiskTierOptions options = tier_with_ballast(folder.sub("blocks"), limit);
    auto tier = open_tier(options);
    ASSERT_NE(tier, nullptr);
    std::vector<uint64_t> resident;
    uint64_t put_bytes = 0;
    for (uint64_t id = 0; put_bytes < 2 * limit; ++id) {
      const uint32_t size = prng.below(2) == 0 ? 500 : static_cast<uint32_t>(prng.below(200'000));
      MadeBlock made = make_block(id, 1, std::max<uint32_t>(8, size));
      put_bytes += made.record.stored_bytes();
      Status put = tier->put(made.record, made.payloads);
      for (int round = 0; !put.ok() && round < 400; ++round) {
        ASSERT_EQ(put.error().code, ErrorCode::kCapacity) << put.error().message;
        const size_t victim = prng.below(resident.size());
        ASSERT_TRUE(tier->erase(made_hash(resident[victim])).ok());
        resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(victim));
        if (round % 8 == 7) static_cast<void>(tier->make_room(made.record.stored_bytes()));
        put = tier->put(made.record, made.payloads);
      }
      ASSERT_TRUE(put.ok()) << "seed " << seed << ": " << put.error().message;
      resident.push_back(id);
      if (prng.below(3) == 0) {
        ASSERT_LE(seen_from_outside(options.directory, limit), limit) << "seed " << seed;
      }
      if (prng.below(40) == 0) {
        ASSERT_TRUE(tier->flush().ok());
      }
      if (prng.below(400) == 0) {
        tier.reset();
        ASSERT_LE(bytes_below(options.directory), limit);
        tier = open_tier(options);
        ASSERT_NE(tier, nullptr);
        EXPECT_EQ(tier->stats().blocks, resident.size());
      }
    }
    EXPECT_EQ(tier->stats().ballast_bytes, options.ballast_bytes);
    EXPECT_EQ(tier->stats().health, "ok");
  }
}

TEST(DiskSpaceTest, BallastIsOfRealBlocksAndPrivate) {
  ScratchFolder folder;
  const DiskTierOptions options = tier_with_ballast(folder.sub("blocks"), 16 * kMiB);
  auto tier = open_tier(options);
  struct stat facts {};
  ASSERT_EQ(::stat((options.directory + "/BALLAST").c_str(), &facts), 0);
  EXPECT_EQ(static_cast<uint64_t>(facts.st_size), options.ballast_bytes);
  EXPECT_GE(static_cast<uint64_t>(facts.st_blocks) * 512, options.ballast_bytes);
  EXPECT_EQ(facts.st_mode & 0777u, 0600u);
  expect_counted_as_on_disk(*tier, options.directory);
}

// One limit after the other, a lower one first: what there is of it never counts against the rest.
TEST(DiskSpaceTest, BallastFollowsTheLimitBothWays) {
  ScratchFolder folder;
  const DiskTierOptions high = tier_with_ballast(folder.sub("blocks"), 512 * kMiB);
  const DiskTierOptions low = tier_with_ballast(folder.sub("blocks"), 16 * kMiB);
  ASSERT_GT(high.ballast_bytes, low.limit_bytes);
  for (const DiskTierOptions* options : {&high, &low, &high}) {
    auto tier = open_tier(*options);
    EXPECT_EQ(std::filesystem::file_size(options->directory + "/BALLAST"), options->ballast_bytes);
    EXPECT_TRUE(tier->has_room(kMiB));
    EXPECT_LE(tier->stats().file_bytes, options->limit_bytes);
    expect_counted_as_on_disk(*tier, options->directory);
  }
}

TEST(DiskSpaceTest, FloorOfFreeSpaceIsKeptByReclaiming) {
  ScratchFolder folder;
  auto drive = std::make_shared<DriveSize>();
  drive->root = folder.path();
  drive->bytes = 80 * kMiB;
  DiskTierOptions options = tier_with_ballast(folder.sub("blocks"), 64 * kMiB);
  options.free_floor_bytes = 40 * kMiB;
  auto tier = open_on(options, drive);
  std::vector<MadeBlock> blocks;
  Status put;
  while (put.ok()) {
    blocks.push_back(make_block(blocks.size(), 2, 100'000));
    put = tier->put(blocks.back().record, blocks.back().payloads);
    ASSERT_GE(drive->free_bytes(), 40 * kMiB);
  }
  EXPECT_EQ(put.error().code, ErrorCode::kCapacity) << put.error().message;
  ASSERT_TRUE(tier->flush().ok());
  EXPECT_GT(bytes_below(options.directory), 24 * kMiB);
  // Others take 8 MiB: as much goes.
  drive->bytes = 72 * kMiB;
  size_t oldest = 0;
  while (!tier->has_room(100'000)) {
    ASSERT_LT(oldest, blocks.size());
    ASSERT_TRUE(tier->erase(blocks[oldest++].record.hash).ok());
    if (oldest % 8 == 0) static_cast<void>(tier->make_room(100'000));
  }
  EXPECT_GE(drive->free_bytes(), 40 * kMiB);
  EXPECT_GT(tier->stats().blocks, 20u);
  // All of it could not mend this: nothing is given up in vain.
  drive->bytes = bytes_below(folder.path());
  const uint64_t before = tier->stats().blocks;
  put = tier->put(blocks[0].record, blocks[0].payloads);
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().code, ErrorCode::kIo);
  EXPECT_NE(put.error().message.find("others have filled its drive"), std::string::npos);
  EXPECT_EQ(tier->stats().blocks, before);
}

TEST(DiskSpaceTest, FloorIsThatOfTheRealPathsFileSystem) {
  ScratchFolder folder, elsewhere;
  std::filesystem::create_directory(folder.sub("real"));
  std::filesystem::create_directory_symlink(folder.sub("real"), elsewhere.sub("link"));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(elsewhere.path());
  DiskTierOptions options = small_tier("link/blocks", 16 * kMiB);
  auto tier = open_tier(options);
  const DiskTierStats stats = tier->stats();
  const uint64_t size = std::filesystem::space(folder.path()).capacity;
  EXPECT_EQ(stats.free_floor_bytes, default_free_floor_bytes(size));
  EXPECT_GT(stats.free_bytes, 0u);
  std::filesystem::current_path("/");
  EXPECT_LT(tier->stats().free_bytes, size);
  std::filesystem::current_path(elsewhere.path());
  tier.reset();
  std::filesystem::current_path(before);
}

void expect_recovery(DiskTier& tier, Library& library) {
  write_through(tier, library, 8);
  library.expect_right(tier);
  const DiskTierStats stats = tier.stats();
  EXPECT_EQ(stats.health, "ok");
  EXPECT_GT(stats.ballast_bytes, 0u);
}

TEST(DiskSpaceTest, FullDriveCostsTheLightestEpochsAndServiceGoesOn) {
  ScratchFolder folder;
  auto drive = std::make_shared<DriveSize>();
  drive->root = folder.path();
  drive->bytes = 1024 * kMiB;
  auto tier = open_on(tier_with_ballast(folder.sub("blocks"), 24 * kMiB), drive);
  Library library(100'000);
  write_through(*tier, library, 60);
  ASSERT_TRUE(tier->flush().ok());
  ASSERT_TRUE(library.put_next(*tier).ok());

  drive->bytes = bytes_below(folder.path());  // to the last byte
  EXPECT_FALSE(tier->flush().ok());
  EXPECT_NE(tier->stats().health, "ok");
  library.expect_right(*tier);  // reads go on
  EXPECT_TRUE(tier->flush().ok());  // thanks to the ballast
  DiskTierStats stats = tier->stats();
  EXPECT_EQ(stats.health, "ok");
  EXPECT_EQ(stats.ballast_releases, 1u);
  EXPECT_GT(stats.ballast_bytes, 0u);  // there is one for the next day
  EXPECT_GT(stats.lost_blocks, 0u);
  library.expect_right(*tier);
  EXPECT_EQ(library.lost().size(), stats.lost_blocks);
  EXPECT_LT(library.lost().size(), library.size() / 2);
  EXPECT_FALSE(library.lost().contains(made_hash(0)));  // the system prompt

  drive->bytes = 1024 * kMiB;
  expect_recovery(*tier, library);
}

TEST(DiskSpaceTest, LostInnerBlocksStayAsHolesAcrossRestarts) {
  ScratchFolder folder;
  auto drive = std::make_shared<DriveSize>();
  drive->root = folder.path();
  drive->bytes = 1024 * kMiB;
  const DiskTierOptions options = tier_with_ballast(folder.sub("blocks"), 24 * kMiB);
  // One long chain: losing any epoch but the newest leaves holes above what remains.
  std::vector<MadeBlock> chain;
  auto tier = open_on(options, drive);
  for (uint64_t id = 0; id < 60; ++id) {
    chain.push_back(make_block(id, 2, 100'000));
    chain.back().record.parent = made_hash(id == 0 ? uint64_t{1} << 50 : id - 1);
    ASSERT_TRUE(tier->put(chain.back().record, chain.back().payloads).ok());
  }
  ASSERT_TRUE(tier->flush().ok());
  MadeBlock last = make_block(60, 2, 100'000);
  last.record.parent = made_hash(uint64_t{1} << 50);  // apart, in the newest epoch
  last.record.position = 0;
  ASSERT_TRUE(tier->put(last.record, last.payloads).ok());
  drive->bytes = bytes_below(folder.path());
  EXPECT_FALSE(tier->flush().ok());
  EXPECT_TRUE(tier->flush().ok());
  const std::vector<BlockHash> lost = tier->take_lost();
  ASSERT_FALSE(lost.empty());
  drive->bytes = 1024 * kMiB;
  tier.reset();
  tier = open_on(options, drive);
  Result<DiskTier::Listing> listing = tier->list();
  ASSERT_TRUE(listing.ok());
  const std::set<BlockHash> gone(lost.begin(), lost.end());
  uint64_t holes = 0;
  for (const auto& [record, touch] : listing->records) {
    EXPECT_EQ(record.epoch == 0, gone.contains(record.hash));
    holes += record.epoch == 0 ? 1u : 0u;
  }
  EXPECT_EQ(tier->stats().blocks + holes, listing->records.size());
  EXPECT_EQ(tier->stats().blocks + lost.size(), 61u);
}

TEST(DiskSpaceTest, StoreOnADriveThatIsFullAtOpeningIsWritable) {
  ScratchFolder folder;
  auto drive = std::make_shared<DriveSize>();
  drive->root = folder.path();
  drive->bytes = 1024 * kMiB;
  const DiskTierOptions options = tier_with_ballast(folder.sub("blocks"), 24 * kMiB);
  Library library(100'000);
  {
    auto tier = open_on(options, drive);
    write_through(*tier, library, 40);
    ASSERT_TRUE(tier->flush().ok());
  }
  drive->bytes = bytes_below(folder.path());
  auto tier = open_on(options, drive);
  ASSERT_NE(tier, nullptr);
  EXPECT_FALSE(tier->stats().reading_only) << tier->stats().health;
  library.expect_right(*tier);
  drive->bytes = 1024 * kMiB;
  expect_recovery(*tier, library);
}

// In earnest: a small tmpfs of the test's own.
class TmpfsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(mount_);
    const std::string size = "size=" + std::to_string(kDriveBytes);
    if (::mount("tmpfs", mount_.c_str(), "tmpfs", 0, size.c_str()) != 0) {
      GTEST_SKIP() << "mounting a tmpfs needs root: " << std::strerror(errno);
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount2(mount_.c_str(), MNT_DETACH);
  }
  uint64_t free_bytes() const { return std::filesystem::space(mount_).available; }
  std::string foreign() const { return mount_ + "/foreign"; }
  void fill_to_the_last_byte() const {
    std::ofstream file(foreign(), std::ios::binary | std::ios::app);
    const std::string page(4096, 'f');
    while (file.write(page.data(), 4096) && file.flush()) continue;
    ASSERT_EQ(free_bytes(), 0u);
  }

  static constexpr uint64_t kDriveBytes = 64 * kMiB;
  ScratchFolder folder_{ScratchFolder::kDrive};
  std::string mount_ = folder_.sub("drive");
  bool mounted_ = false;
};

TEST_F(TmpfsTest, AForeignFileFillsTheDriveAndLeavesAgain) {
  auto tier = open_tier(tier_with_ballast(mount_ + "/blocks", 24 * kMiB));
  ASSERT_NE(tier, nullptr);
  Library library(100'000);
  write_through(*tier, library, 60);
  for (int round = 0; round < 2; ++round) {
    bool full = false;
    // RocksDB may be about to delete a file: what it frees lets one flush through, or two.
    for (int attempt = 0; attempt < 3 && !full; ++attempt) {
      std::filesystem::remove(foreign());
      ASSERT_TRUE(library.put_next(*tier).ok());
      fill_to_the_last_byte();
      full = !tier->flush().ok();
    }
    ASSERT_TRUE(full);
    write_through(*tier, library, 6);
    library.expect_right(*tier);
    EXPECT_EQ(tier->stats().health, "ok");
    EXPECT_GT(tier->stats().lost_blocks, 0u);
    EXPECT_FALSE(library.lost().contains(made_hash(0)));
    std::filesystem::remove(foreign());
    expect_recovery(*tier, library);
  }
  EXPECT_EQ(tier->stats().ballast_releases, 2u);
}

TEST_F(TmpfsTest, StoreOpensOnAFullDriveAndRecovers) {
  const DiskTierOptions options = tier_with_ballast(mount_ + "/blocks", 24 * kMiB);
  Library library(100'000);
  {
    auto tier = open_tier(options);
    write_through(*tier, library, 40);
    ASSERT_TRUE(tier->flush().ok());
  }
  fill_to_the_last_byte();
  auto tier = open_tier(options);
  ASSERT_NE(tier, nullptr);
  EXPECT_FALSE(tier->stats().reading_only) << tier->stats().health;
  library.expect_right(*tier);
  std::filesystem::remove(foreign());
  expect_recovery(*tier, library);
}

}  // namespace
}  // namespace ember
