// Disk tier, inside: the state that its sources share. The contract is store/disk_tier.h.
//
// Journey    host_tier -> [disk_tier] -> host_tier
// Owns       the open database, where each block lies, what each epoch holds
// Invariant  places_ and epochs_ agree with the records accepted or seen so far; the database
//            pointer changes only under an exclusive hold of db_mutex_
// Threads    reads share db_mutex_; the write lane alone changes the state
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "store/disk/block_map.h"
#include "store/disk/ballast.h"
#include "store/disk/disk_format.h"
#include "store/disk/epoch_loss.h"
#include "store/disk_plan.h"
#include "store/disk_tier.h"
#include "store/disk/rocksdb_seam.h"

namespace ember {

// Where RocksDB's options for the two families are chosen.
struct DiskFamilies {
  rocksdb::ColumnFamilyOptions meta;
  rocksdb::ColumnFamilyOptions data;
};
DiskFamilies disk_families(const DiskTierOptions& options);

// The first number from `from` on at which keys of a kind can be read again, where a damaged table
// block hides some; nothing if all that follow are hidden. Cost: some 50 seeks.
std::optional<uint32_t> readable_from(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* meta,
                                      MetaKind kind, uint32_t from);

class BlocksSalvage;  // store/disk/blocks_salvage.cc

class DiskTierImpl final : public DiskTier {
 public:
  // `base`: the file system below (null: the machine's).
  static Result<std::unique_ptr<DiskTier>> open(const DiskTierOptions& options,
                                                std::shared_ptr<rocksdb::FileSystem> base);
  ~DiskTierImpl() override;

  Result<Listing> list() override;
  Result<ScanStep> scan(const ScanFrom& from, size_t most, const RecordVisitor& visit) override;
  void opening_ended() override;
  Result<std::optional<BlockRecord>> read_record(const BlockHash& hash) override;
  Status read_group(const BlockRecord& record, uint32_t group, Bytes raw) override;
  Result<std::optional<FoundRecord>> read_as_found(const BlockHash& hash) override;
  Result<Scan> records_after(const std::optional<BlockHash>& after, size_t most) override;
  Status probe() override;
  Status put(BlockRecord& record, std::span<const std::string> payloads) override;
  Status erase(const BlockHash& hash) override;
  Status touch(std::span<const std::pair<BlockHash, TouchRecord>> touches) override;
  Status flush() override;
  bool has_room(uint64_t stored_bytes) const override;
  Status make_room(uint64_t stored_bytes) override;
  Status checkpoint(const std::string& directory) override;
  Status retire_epochs(std::span<const uint32_t> epochs) override;
  Result<bool> make_room_slice(uint64_t stored_bytes) override;
  double next_dead_share() const override;
  std::vector<EpochSample> sample_epochs(size_t most_epochs, size_t most_blocks) override;
  std::vector<LiveBlock> live_blocks(uint32_t epoch) override;
  std::vector<EpochUse> epochs() const override;
  Status retire_epoch(uint32_t epoch) override;
  Status compact() override;
  Status make_hole(const BlockHash& hash) override;
  Result<Reindexed> reindex(bool dry_run) override;
  Result<bool> upkeep() override;
  std::vector<BlockHash> take_lost() override;
  DiskTierStats stats() const override;
  Result<std::vector<std::string>> verify_files() override;

 private:
  friend class BlocksSalvage;  // puts blocks as they are stored

  struct Place {
    uint32_t epoch = 0;
    uint32_t stored_bytes = 0;
    uint32_t raw_bytes = 0;
    bool vacant() const { return epoch == 0; }
  };
  static Place place_of(const BlockRecord& record);
  struct Epoch {
    uint64_t bytes = 0;       // payload put into it, live or not
    uint64_t live_bytes = 0;  // of the blocks whose record names it
    uint32_t live = 0;
    uint32_t files = 0;      // flushes that were asked for while it was open
    bool rewritten = false;  // holds what reclaiming put again
    int64_t not_before_us = 0;  // the drive did not give all of it when it was to be reclaimed
    uint64_t dead_bytes() const { return bytes - live_bytes; }
  };
  // New groups and those that are put again fill epochs of their own: what has lived long stays
  // apart from what may go soon, and no epoch is rewritten for its files twice.
  enum Stream : uint8_t { kNew, kAgain };
  // An epoch that is being emptied, slice by slice.
  struct Reclaim {
    uint32_t epoch = 0;  // 0: none
    bool crowded = false;
    std::vector<BlockHash> live;
    size_t next = 0;
  };

  DiskTierImpl(const DiskTierOptions& options, std::shared_ptr<rocksdb::FileSystem> base);

  // disk_tier.cc
  Status open_database(bool read_only);
  Status open_for_writing_or_reading();
  void close_database();
  Status read_payload(const BlockRecord& record, uint32_t group, rocksdb::PinnableSlice& payload);
  Status prove_payload(const BlockRecord& record, uint32_t group, std::string_view payload,
                       Bytes raw) const;
  Status prove_group(const BlockRecord& record, uint32_t group, Bytes raw);

  // disk_tier_options.cc
  // While a large store is opened, that has the drive and the cores. Compaction begins when the
  // caller says so, when few records were all there are, or when so much has been written.
  static constexpr uint32_t kFewRecords = 4096;
  static constexpr uint32_t kWritesBeforeCompaction = 4096;
  void hold_compaction(DiskFamilies& families);
  void let_compact();

  // disk_tier_scan.cc
  // The epochs; with `all` (or where that cannot be told without) every place too.
  Status load_state(bool all);
  Result<ScanStep> scan_now(const ScanFrom& from, size_t most, const RecordVisitor& visit);
  struct RecordWalk;
  void drop_old_walks();
  std::shared_ptr<RecordWalk> take_walk(const ScanFrom& from);
  using SeenPlace = std::pair<BlockHash, Place>;
  Result<bool> see(const ScanStep& step, const ScanFrom& from, std::span<const SeenPlace> places,
                   const RecordWalk& walk);
  // Walks on to the last record that no scan has reached. The write lane, before what needs all.
  Status see_all_places();
  // disk_tier_probe.cc
  Status probe_files(const std::string& value);
  Status probe_database(const BlockHash& hash, const std::string& value);

  // disk_tier_damage.cc
  std::optional<std::string> payload_as_found(const BlockRecord& record, uint32_t group);
  Status read_proven(const BlockHash& hash, BlockRecord& record,
                     std::vector<std::string>& payloads);
  void lose_block(const BlockHash& hash, const Error& why);

  // disk_tier_seal.cc: what is written and read, with encryption or without
  Result<std::string> row_of(const BlockRecord& record) const;
  // Nothing when the key of its scope is destroyed.
  Result<std::optional<BlockRecord>> record_of(std::string_view key, std::string_view row) const;
  // The same into `record`, whose memory is used again; false when the key is destroyed.
  Result<bool> read_row(std::string_view key, std::string_view row, BlockRecord& record) const;
  // Views into `payloads`, or into `sealed`, which holds them sealed then.
  Result<std::vector<std::string_view>> stored_forms(const BlockRecord& record,
                                                     std::span<const std::string> payloads,
                                                     std::vector<std::string>& sealed) const;
  // A view into `stored`, or into `opened`, which holds it opened then.
  Result<std::string_view> payload_of(const BlockRecord& record, uint32_t group,
                                      std::string_view stored, std::string& opened) const;

  // disk_tier_write.cc
  Status check_writable();
  Status recover();
  struct CarriedBlock {
    BlockRecord record;
    std::vector<std::string> payloads;  // as they are stored
  };
  std::vector<CarriedBlock> unflushed_blocks();
  bool lies_in(const BlockHash& hash, uint32_t epoch) const;
  Status put_carried(std::vector<CarriedBlock>& carried);
  Status reopen();
  Status erase_again();
  Status erase_now(const BlockHash& hash);
  Status check_room(uint64_t stored_bytes) const;
  // Notes what it means for the tier; `what` was being done.
  Error failed(const rocksdb::Status& status, const char* what);
  Status write(rocksdb::WriteBatch& batch, bool may_wait);
  Status open_epoch(Stream stream, uint64_t stored_bytes, uint32_t& epoch);
  Status put_now(BlockRecord& record, std::span<const std::string_view> stored, Stream stream);
  Status flush_now();
  // What the files may come to when `more_bytes` are put too.
  uint64_t needed_bytes(uint64_t more_bytes) const;
  void place_block(const BlockHash& hash, const Place& place) EMBER_REQUIRES(state_mutex_);
  void add_place(const BlockHash& hash, const Place& place) EMBER_REQUIRES(state_mutex_);
  void forget_block(const BlockHash& hash) EMBER_REQUIRES(state_mutex_);

  // disk_tier_reclaim.cc
  bool is_open(uint32_t epoch) const EMBER_REQUIRES(state_mutex_) {
    return epoch == open_epochs_[kNew] || epoch == open_epochs_[kAgain];
  }
  // What costs least to retire; epoch 0: none has anything dead.
  struct Choice {
    uint32_t epoch = 0;
    double dead_share = 0;
  };
  Choice choose_epoch() const;
  uint32_t crowded_epoch() const;
  Status begin_reclaim(uint32_t epoch, bool crowded);
  Result<bool> reclaim_slice();  // true: not finished
  Status retire(uint32_t epoch);
  Status rewrite_block(const BlockHash& hash);
  Status drop_epoch(uint32_t epoch, rocksdb::WriteBatch& batch);
  void await_deletions() const;
  void lower_ledger_limit();

  // disk_tier_space.cc
  void find_file_system();
  uint64_t free_bytes() const;
  // How many bytes are missing for `more_bytes` above the floor; 0: none.
  uint64_t below_floor_bytes(uint64_t more_bytes) const;
  bool release_ballast();
  void keep_ballast();
  Status leave_full_drive();
  Status lose_epoch();
  Result<std::vector<StoredBlock>> stored_blocks();
  // disk_tier_reindex.cc
  struct RowFaults;
  Status find_faults(RowFaults& faults);
  // disk_tier_forget.cc
  // Rows whose key was destroyed: noted by scans, erased by the write lane with its next flush.
  void note_forgotten(std::string_view key);
  void erase_forgotten();

  std::string doing(std::string_view what) const;

  DiskTierOptions options_;
  EpochSizes sizes_;
  Seam seam_;
  Ballast ballast_;
  std::string real_directory_;  // as it was at opening, without links: another may be current later
  uint64_t free_floor_bytes_ = 0;
  LimitedFileSystemOptions file_options_;

  mutable std::shared_mutex db_mutex_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle* meta_ = nullptr;
  rocksdb::ColumnFamilyHandle* data_ = nullptr;
  std::atomic<bool> compaction_waits_ = false;
  bool read_only_ = false;
  std::string read_only_reason_;  // empty when asked for
  bool waits_for_space_ = false;

  Mutex walk_mutex_;
  // Where the last scan of each share stopped; each holds on to the files of its time, so one with
  // which nobody goes on is let go at a flush.
  std::array<std::shared_ptr<RecordWalk>, kScanShares> walks_ EMBER_GUARDED_BY(walk_mutex_);

  mutable Mutex state_mutex_;
  BlockMap<Place> places_ EMBER_GUARDED_BY(state_mutex_);
  // While scans have not reached all records: where the next one of each share begins, and what was
  // erased since opening, which a scan may have read before.
  struct SeenShare {
    std::string up_to;  // its cursor
    bool all = false;
  };
  bool all_seen_ EMBER_GUARDED_BY(state_mutex_) = false;
  std::array<SeenShare, kScanShares> seen_ EMBER_GUARDED_BY(state_mutex_);
  std::unordered_set<BlockHash> erased_ EMBER_GUARDED_BY(state_mutex_);
  std::map<uint32_t, Epoch> epochs_ EMBER_GUARDED_BY(state_mutex_);
  std::array<uint32_t, 2> open_epochs_ EMBER_GUARDED_BY(state_mutex_){};  // by stream; 0: none
  uint32_t newest_epoch_ EMBER_GUARDED_BY(state_mutex_) = 0;
  uint64_t unflushed_bytes_ EMBER_GUARDED_BY(state_mutex_) = 0;
  // Erased and not put again since.
  std::unordered_set<BlockHash> unflushed_erasures_ EMBER_GUARDED_BY(state_mutex_);
  std::vector<BlockHash> unflushed_blocks_ EMBER_GUARDED_BY(state_mutex_);  // new ones, in order
  uint64_t lost_blocks_ EMBER_GUARDED_BY(state_mutex_) = 0;  // accepted, gone before a flush
  uint64_t stored_bytes_ EMBER_GUARDED_BY(state_mutex_) = 0;
  uint64_t raw_bytes_ EMBER_GUARDED_BY(state_mutex_) = 0;
  DiskTierStats counters_ EMBER_GUARDED_BY(state_mutex_);     // those since opening
  std::vector<BlockHash> lost_ EMBER_GUARDED_BY(state_mutex_);  // not yet told
  // Lost with their epoch or with what was in memory, and not put again since: who has not heard of
  // it yet may go on to put their children, which must wait.
  std::unordered_set<BlockHash> given_up_ EMBER_GUARDED_BY(state_mutex_);
  bool records_hidden_ EMBER_GUARDED_BY(state_mutex_) = false;  // a scan met damaged tables
  std::string damage_note_ EMBER_GUARDED_BY(state_mutex_);  // found at opening; writes go on
  std::vector<std::string> forgotten_rows_ EMBER_GUARDED_BY(state_mutex_);
  // Write lane only:
  bool dirty_ = false;           // something waits for a flush
  bool full_drive_ = false;      // a write found no space, and room has not been made since
  uint32_t memtable_epoch_ = 0;  // whose groups wait for a flush; 0: none
  Reclaim reclaim_;
  RecoveryPause recovery_;
  uint32_t writes_ = 0;  // since opening, while compaction waits
};

}  // namespace ember
