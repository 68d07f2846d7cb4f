// Fills a small store to several times its size, oldest out first, and looks at the disk at every
// step: the limit holds in bytes on disk, and what was not erased reads back right.
#pragma once

#include <deque>
#include <map>

#include "tests/store/disk/disk_store_testing.h"

namespace ember {

struct Fill {
  uint64_t limit_bytes = 0;
  uint32_t group_bytes = 0;
  uint64_t keep_every = 0;  // every n-th block is never erased; 0: none
  uint64_t erase_at_once = 12;
  ScratchFolder::Where where = ScratchFolder::kAnywhere;
};

class FillRun {
 public:
  explicit FillRun(const Fill& fill)
      : fill_(fill), options_(small_tier(folder_.sub("blocks"), fill.limit_bytes)) {}

  void run() {
    fill_store();
    if (testing::Test::HasFatalFailure()) return;
    for (int round = 0; round < 2; ++round) check_after_reopening();
  }

 private:
  MadeBlock block(uint64_t id) const { return make_block(id, 2, fill_.group_bytes); }

  void erase_oldest(DiskTier& tier) {
    for (uint64_t i = 0; i < fill_.erase_at_once && !oldest_.empty(); ++i) {
      ASSERT_TRUE(tier.erase(made_hash(oldest_.front())).ok());
      kept_.erase(oldest_.front());
      oldest_.pop_front();
    }
  }

  void make_room(DiskTier& tier, uint64_t stored) {
    while (!tier.has_room(stored)) {
      Status room = tier.make_room(stored);
      ASSERT_LE(bytes_below(options_.directory), fill_.limit_bytes);
      if (room.ok()) continue;
      ASSERT_EQ(room.error().code, ErrorCode::kCapacity) << room.error().message;
      ASSERT_FALSE(oldest_.empty()) << room.error().message;
      erase_oldest(tier);
    }
  }

  void fill_store() {
    auto tier = open_tier(options_);
    ASSERT_NE(tier, nullptr);
    uint64_t put_bytes = 0;
    for (uint64_t id = 0; put_bytes < 5 * fill_.limit_bytes; ++id) {
      MadeBlock made = block(id);
      uint64_t stored = made.record.stored_bytes();
      make_room(*tier, stored);
      Status status = tier->put(made.record, made.payloads);
      ASSERT_TRUE(status.ok()) << status.error().message;
      ASSERT_LE(bytes_below(options_.directory), fill_.limit_bytes);
      put_bytes += stored;
      kept_[id] = made.record;
      if (fill_.keep_every == 0 || id % fill_.keep_every != 0) oldest_.push_back(id);
      if (id % 29 == 0) {
        ASSERT_TRUE(tier->flush().ok());
      }
    }
    ASSERT_TRUE(tier->flush().ok());
    DiskTierStats stats = tier->stats();
    EXPECT_GT(stats.retired_epochs, 3u);
    EXPECT_EQ(stats.health, "ok");
    EXPECT_EQ(stats.blocks, kept_.size());
    expect_counted_as_on_disk(*tier, options_.directory);
    EXPECT_GT(stats.stored_bytes, fill_.limit_bytes / 3);
  }

  void check_after_reopening() {
    auto tier = open_tier(options_);
    ASSERT_NE(tier, nullptr);
    ASSERT_LE(bytes_below(options_.directory), fill_.limit_bytes);
    Result<DiskTier::Listing> listing = tier->list();
    ASSERT_TRUE(listing.ok());
    ASSERT_EQ(listing->records.size(), kept_.size());
    for (auto& [record, touch] : listing->records) {
      ASSERT_EQ(kept_.count(record.position), 1u);
      MadeBlock expected = block(record.position);
      ASSERT_EQ(read_error(*tier, record, expected), "");
      // A record from before its epoch was retired still finds its groups.
      ASSERT_EQ(read_error(*tier, kept_[record.position], expected), "");
    }
  }

  Fill fill_;
  ScratchFolder folder_{fill_.where};
  DiskTierOptions options_;
  std::map<uint64_t, BlockRecord> kept_;
  std::deque<uint64_t> oldest_;
};

}  // namespace ember
