// Disk tier: RocksDB driven as a log of epochs; the place from which yesterday comes back.
//
// Journey    host_tier -> [disk_tier] -> host_tier   (offload; reversed on restore)
// Owns       the RocksDB in <store>/blocks: column families `meta` (block, touch and epoch records)
//            and `data` (one blob for each layer group, key = epoch, block hash, group)
// Invariant  what was accepted is durable after the next flush() and not before; bytes on disk stay
//            within limit_bytes; a group is returned only if its raw checksum agrees
// Threads    read_*: any thread. put, erase, touch, flush, make_room, upkeep: the write lane only.
// Not here   which block goes (prefix_index/eviction.h), when to write (store/cache/offload_plan.h)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "store/quarantine.h"
#include "store/record.h"

namespace ember {

class ValueSealer;  // store/disk/value_sealer.h

// The most that RocksDB's flushes and compactions write together, so that restores are not starved.
inline constexpr uint64_t kDefaultWriteBytesPerSecond = uint64_t{1} << 30;

struct DiskTierOptions {
  std::string directory;           // <store>/blocks; made if absent
  uint64_t limit_bytes = 0;        // for all files below `directory`, the ballast among them
  uint64_t ballast_bytes = 0;      // kept as a file of real blocks for the day the drive is full
  uint64_t memtable_bytes = 0;     // RAM for memtables, all together
  uint64_t block_cache_bytes = 0;  // RAM for RocksDB's cache of metadata
  // Of the file system that `directory` lies on: never less is left free by what is put.
  // Unset: default_free_floor_bytes.
  std::optional<uint64_t> free_floor_bytes;
  uint64_t write_bytes_per_s = kDefaultWriteBytesPerSecond;  // 0: no limit
  bool read_only = false;  // inspection: creates nothing, deletes nothing, takes no lock
  bool scan_later = false;  // open() reads no block record: the caller scans them
  // Takes a block that was found wrong when its epoch had to go, before its bytes go with it.
  std::function<void(const QuarantineEntry&)> set_aside;
  std::shared_ptr<ValueSealer> sealer;  // null: values lie in clear
};

// 1/32 of a file system, at most 1 GiB.
uint64_t default_free_floor_bytes(uint64_t file_system_bytes);

struct TouchRecord {
  int64_t last_use_unix_us = 0;
  uint32_t hits = 0;
};

struct DiskTierStats {
  uint64_t file_bytes = 0;  // all files below the directory, as they are
  uint64_t limit_bytes = 0;
  uint64_t stored_bytes = 0;  // payload of live groups
  uint64_t raw_bytes = 0;     // what they decode to
  uint64_t blocks = 0;
  uint64_t epochs = 0;
  uint64_t free_bytes = 0;        // of the file system
  uint64_t free_floor_bytes = 0;  // of those, what is left to others
  uint64_t ballast_bytes = 0;     // 0: released (or not asked for)
  // Since opening:
  uint64_t accepted_bytes = 0;     // payload of puts
  uint64_t written_bytes = 0;      // to files
  uint64_t written_blob_bytes = 0;   // of those, groups: accepted, put again, their keys and frames
  uint64_t written_table_bytes = 0;  // and metadata: flushed and compacted
  uint64_t retired_epochs = 0;     // all of them, for whatever reason
  uint64_t crowded_epochs = 0;     // of those, rewritten because they had too many files
  uint64_t rewritten_bytes = 0;    // live groups put again
  uint64_t ballast_releases = 0;   // times that the drive was full
  uint64_t lost_epochs = 0;        // dropped with live blocks, for want of any space
  uint64_t lost_blocks = 0;        // those blocks
  bool fast_checksums = false;   // RocksDB uses our CRC-32C (store/disk/fast_crc32c.h)
  std::string health;            // "ok", or what does not work and since what error
  bool reading_only = false;     // asked for, or because it could not be opened for writing
  bool waits_for_space = false;  // of these, because the drive is full: it tries again by itself
};

class DiskTier {
 public:
  // Errors: kCorruption or kIo where RocksDB cannot open it (its own text included).
  static Result<std::unique_ptr<DiskTier>> open(const DiskTierOptions& options);
  virtual ~DiskTier() = default;

  // Readable block records with their touch records; unreadable ones are counted, not returned.
  // Epoch 0: a hole: its groups are lost, its descendants' are not.
  struct Listing {
    std::vector<std::pair<BlockRecord, TouchRecord>> records;
    uint64_t unreadable = 0;
    uint64_t forgotten = 0;  // sealed, and the key of their scope is destroyed
  };
  // All of them.
  virtual Result<Listing> list() = 0;

  // A walk through all records: kScanShares shares by the first byte of their hashes, each in the
  // order of its hashes; shares can be walked beside each other. After open with `scan_later` the
  // sums in stats() grow with the steps, and whatever needs all of them (making room) first walks
  // to the end by itself.
  static constexpr uint32_t kScanShares = 8;
  struct ScanFrom {
    uint32_t share = 0;
    std::string cursor;  // empty: from the share's first record on
  };
  struct ScanStep {
    std::string cursor;  // for the next step
    bool done = false;   // with this share
    uint64_t found = 0;
    uint64_t unreadable = 0;
    uint64_t forgotten = 0;  // as in a listing
  };
  // What it is given lasts for the call.
  using RecordVisitor = std::function<void(const BlockRecord&, const TouchRecord&)>;
  // Shows at most `most` records behind the cursor. A record that is put or erased during the walk
  // may be found or not.
  // Errors: kIo; kCorruption at the end of the last share when no record at all could be read.
  // Threads: any, one at a time in a share.
  virtual Result<ScanStep> scan(const ScanFrom& from, size_t most, const RecordVisitor& visit) = 0;
  // After open with `scan_later`: the caller has scanned a large store. The rearranging of tables,
  // which waits until then so that it takes neither drive nor cores from opening, may begin.
  // Threads: any.
  virtual void opening_ended() {}

  // The current record of a block; nothing if there is none. Errors: kCorruption, kIo.
  virtual Result<std::optional<BlockRecord>> read_record(const BlockHash& hash) = 0;
  // Reads, decodes and proves one group of `record` into `raw` (record.groups[group].raw_bytes);
  // where the record's epoch has been retired since, from where the group is now.
  // Errors: kCorruption (checksum, length, RocksDB's own), kIo. `raw` is undefined after an error.
  virtual Status read_group(const BlockRecord& record, uint32_t group, Bytes raw) = 0;

  // A block as it lies there, for the quarantine; nothing if there is none.
  virtual Result<std::optional<FoundRecord>> read_as_found(const BlockHash&) {
    return std::optional<FoundRecord>();
  }
  // Up to `most` records in the order of their hashes, from the first after `after`; for scrubbing.
  struct Scan {
    std::vector<std::pair<BlockHash, Result<BlockRecord>>> records;
    bool ended = false;  // no record follows
    // Records between these two, if there are any, cannot be listed: a damaged table hides them.
    std::optional<std::pair<BlockHash, BlockHash>> gap;
  };
  virtual Result<Scan> records_after(const std::optional<BlockHash>&, size_t) {
    Scan nothing;
    nothing.ended = true;
    return nothing;
  }

  // Accepts a block: `payloads` in the order of record.groups; sets record.epoch. A block that is
  // there already (same hash) is replaced. Errors: kCapacity (no room: make_room and try again),
  // kBusy (RocksDB asks for a pause; try again), kIo (also: others have filled the drive below the
  // floor, and nothing that this store could give up would mend that).
  virtual Status put(BlockRecord& record, std::span<const std::string> payloads) = 0;
  virtual Status erase(const BlockHash& hash) = 0;
  virtual Status touch(std::span<const std::pair<BlockHash, TouchRecord>> touches) = 0;
  // Everything accepted so far survives a crash from here on. Errors: kIo, kCapacity, kBusy (try
  // again); kCancelled when blocks accepted since the last flush were lost and are to be put again.
  virtual Status flush() = 0;

  // Whether a block of `stored_bytes` fits without make_room, a margin for metadata included.
  virtual bool has_room(uint64_t stored_bytes) const = 0;
  // Frees file space by retiring the oldest epochs; live groups in them are put again. The caller
  // has erased what may go, enough of it that the rewriting fits.
  virtual Status make_room(uint64_t stored_bytes) = 0;
  // The same in slices, so that flushes can go in between. True: not yet, call again.
  virtual Result<bool> make_room_slice(uint64_t stored_bytes) {
    EMBER_TRY(make_room(stored_bytes));
    return false;
  }
  // Of the epoch that make_room would retire next, the part that is dead: with a third of it still
  // live, each byte of room costs half a byte that is put again. 0: nothing is dead. Threads: any.
  virtual double next_dead_share() const { return 0; }
  // Sealed epochs, for whoever decides which one goes: at most so many, half of them those with the
  // largest dead share, the others the oldest; with up to `most_blocks` live blocks of each, as
  // their hashes fall. None where not all records are known yet. Threads: the write lane.
  struct EpochSample {
    uint32_t epoch = 0;
    uint64_t bytes = 0;       // payload put into it
    uint64_t live_bytes = 0;  // of that
    std::vector<BlockHash> live;
  };
  virtual std::vector<EpochSample> sample_epochs(size_t /*most_epochs*/, size_t /*most_blocks*/) {
    return {};
  }
  // All that is live in one. Threads: the write lane. Cost: linear in the tier's blocks.
  struct LiveBlock {
    BlockHash hash;
    uint64_t stored_bytes = 0;
  };
  virtual std::vector<LiveBlock> live_blocks(uint32_t /*epoch*/) { return {}; }
  // One slice of what can wait for a quiet moment: epochs of many small files are written anew.
  // True: there is more.
  virtual Result<bool> upkeep() { return false; }
  // Blocks that were durable and are no more: a full drive took their epoch, or reclaiming found
  // them unreadable. Each is told once. Threads: any.
  virtual std::vector<BlockHash> take_lost() { return {}; }

  // Writes a record, reads it back from the drive, compares and removes it; leaves nothing. To be
  // called once, before anything else. Errors: kCorruption (it came back changed), kIo, kCapacity.
  virtual Status probe() { return {}; }
  // A copy of the database as it is, in `directory`, which is absent. Errors: kIo, kCapacity.
  virtual Status checkpoint(const std::string& directory) {
    return {ErrorCode::kUnsupported, directory + ": this disk tier makes no snapshots"};
  }
  // Retires these epochs (those that are gone already are passed over) and compacts the metadata:
  // then no file holds a byte of what was erased from them. Live groups in them are put again.
  // Errors: kCapacity where these do not fit beside the epoch, kIo. Threads: the write lane.
  virtual Status retire_epochs(std::span<const uint32_t>) {
    return {ErrorCode::kUnsupported, "this disk tier has no epochs"};
  }

  // All epochs, open ones too, from the oldest on. None where not all records are known yet.
  // Threads: any.
  struct EpochUse {
    uint32_t epoch = 0;
    uint64_t bytes = 0;       // payload put into it
    uint64_t live_bytes = 0;  // of that
    uint64_t live_blocks = 0;
  };
  virtual std::vector<EpochUse> epochs() const { return {}; }
  // Retires one epoch (nothing to do where it is gone): live groups in it are put again.
  // Errors: as retire_epochs. Threads: the write lane.
  virtual Status retire_epoch(uint32_t /*epoch*/) { return {}; }
  // Rewrites the metadata into as few bytes as it takes. Errors: kIo, kCapacity. Threads: the write
  // lane.
  virtual Status compact() { return {}; }
  // The block's groups are given up, its record stays: what hangs below it is reached again once
  // it is computed anew. Errors: kInvalidArgument without such a block, kIo. Threads: the write
  // lane.
  virtual Status make_hole(const BlockHash& hash) {
    return {ErrorCode::kUnsupported, "block " + hash.hex() + ": this disk tier has no holes"};
  }
  // Makes what is kept beside the records agree with them: rows of epochs are written anew; rows of
  // blocks and uses that cannot be read, or that belong to nothing, go (unreadable blocks through
  // `set_aside` first). Errors: kCorruption where a table hides records, kIo. Threads: the write
  // lane.
  struct Reindexed {
    uint64_t epochs = 0;      // rows that were wrong or missing
    uint64_t unreadable = 0;  // block rows that went
    uint64_t touches = 0;     // rows of uses that went
  };
  virtual Result<Reindexed> reindex(bool /*dry_run*/) { return Reindexed{}; }

  virtual DiskTierStats stats() const = 0;  // Threads: any
  // RocksDB's own checks of its tables; for `verify`. Returns the files that cannot be read.
  virtual Result<std::vector<std::string>> verify_files() = 0;
};

}  // namespace ember
