// Disk tier: accepting, erasing and flushing; getting up again after RocksDB has given up.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "store/disk/disk_tier_impl.h"
#include "store/disk/rocksdb_status.h"

namespace ember {
namespace {

// What a block takes beyond its payload: blob headers, keys, the record twice (memtable and table).
uint64_t overhead_bytes(const BlockRecord& record) {
  return 1024 + 160 * record.groups.size() + 2 * sizeof(TokenId) * record.tokens.size();
}

// Typical overhead where only the payload's size is known.
constexpr uint64_t kTypicalOverhead = 16u << 10;
constexpr uint64_t kSmallRowBytes = 128;

}  // namespace

uint64_t DiskTierImpl::needed_bytes(uint64_t more_bytes) const {
  FileLedger& ledger = seam_.files->ledger();
  uint64_t unflushed;
  {
    MutexLock lock(state_mutex_);
    unflushed = unflushed_bytes_;
  }
  // Compaction writes tables anew before it deletes the old ones.
  return ledger.file_bytes() + unflushed + more_bytes + ledger.rewritable_bytes() +
         sizes_.margin_bytes;
}

bool DiskTierImpl::has_room(uint64_t stored_bytes) const {
  const uint64_t more = stored_bytes + kTypicalOverhead;
  // An epoch's worth stays free, so that retiring one can always put its live groups again; and the
  // ballast's, while the drive was too full for it.
  const uint64_t reserve = sizes_.epoch_bytes + ballast_.missing_bytes();
  return needed_bytes(more + reserve) <= options_.limit_bytes && below_floor_bytes(more) == 0;
}

Status DiskTierImpl::check_room(uint64_t stored_bytes) const {
  if (has_room(stored_bytes)) return {};
  const uint64_t missing = below_floor_bytes(stored_bytes + kTypicalOverhead);
  if (missing > seam_.files->ledger().file_bytes() - ballast_.held_bytes()) {
    return {ErrorCode::kIo, doing("others have filled its drive: " + std::to_string(free_bytes()) +
                                  " bytes are free, " + std::to_string(free_floor_bytes_) +
                                  " are to stay free, and giving up every block would not do")};
  }
  return {ErrorCode::kCapacity, doing("no room for " + std::to_string(stored_bytes) +
                                      " bytes within " + std::to_string(options_.limit_bytes) +
                                      " and above a floor of " +
                                      std::to_string(free_floor_bytes_) + " free bytes")};
}

Status DiskTierImpl::check_writable() {
  bool trouble = db_ == nullptr || read_only_ || full_drive_ || !seam_.health->text().empty();
  if (!trouble) return {};
  if (options_.read_only) return {ErrorCode::kUnsupported, doing("opened for reading only")};
  return recover();
}

// RocksDB's own Resume is not used: where the drive refuses once more in its midst, it waits for
// ever for a flush that nobody will do. The database is opened anew, and what it had in memory
// alone is carried over.
Status DiskTierImpl::recover() {
  std::string reason = seam_.health->text();
  if (reason.empty()) reason = read_only_reason_;
  if (!recovery_.begin(system_clock().now_us())) {
    return {ErrorCode::kBusy, doing("not writable: " + reason)};
  }
  full_drive_ = full_drive_ || seam_.health->error().IsNoSpace();
  // Opening writes a little. Without room for that it would only cost what is in memory.
  if (full_drive_ && !release_ballast() && free_bytes() < sizes_.margin_bytes) {
    return {ErrorCode::kCapacity, doing("not writable: " + reason)};
  }
  EMBER_TRY(reopen());
  recovery_.succeeded();
  return leave_full_drive();
}

// New blocks that wait for a flush, as far as they can be read, parents first. (One that was put
// again still lies where it was.) RAM: at most what the memtables hold, which go next.
std::vector<DiskTierImpl::CarriedBlock> DiskTierImpl::unflushed_blocks() {
  std::vector<BlockHash> hashes;
  {
    MutexLock lock(state_mutex_);
    std::erase_if(unflushed_blocks_, [this](const BlockHash& hash) {
      return places_.count(hash) == 0;  // erased since
    });
    hashes = unflushed_blocks_;
  }
  std::vector<CarriedBlock> carried;
  std::unordered_set<BlockHash> unreadable;
  for (const BlockHash& hash : hashes) {
    CarriedBlock block;
    if (read_proven(hash, block.record, block.payloads).ok() &&
        !unreadable.contains(block.record.parent)) {
      carried.push_back(std::move(block));
    } else {
      unreadable.insert(hash);  // and with it what hangs below
    }
  }
  return carried;
}

Status DiskTierImpl::reopen() {
  std::vector<CarriedBlock> carried = unflushed_blocks();
  {
    std::unique_lock hold(db_mutex_);
    {
      MutexLock lock(state_mutex_);
      lost_blocks_ += unflushed_blocks_.size();
      given_up_.insert(unflushed_blocks_.begin(), unflushed_blocks_.end());
      unflushed_blocks_.clear();
      unflushed_bytes_ = 0;
    }
    dirty_ = false;  // no last flush: what it would write is carried
    close_database();
    memtable_epoch_ = 0;
    reclaim_ = {};
    seam_.files->ledger().scan(options_.directory);
    read_only_reason_.clear();
    EMBER_TRY(open_for_writing_or_reading());
    const Status loaded = load_state(true);
    if (!loaded.ok()) {
      // With half of the places known it must not go on; the next attempt opens it again.
      close_database();
      seam_.health->report(rocksdb::Status::IOError(loaded.error().message));
      return loaded;
    }
  }
  if (read_only_) return {ErrorCode::kIo, doing("reading only: " + read_only_reason_)};
  let_compact();  // all is read, and tables that pile up would stop the writing
  EMBER_TRY(erase_again());
  return put_carried(carried);
}

bool DiskTierImpl::lies_in(const BlockHash& hash, uint32_t epoch) const {
  MutexLock lock(state_mutex_);
  const auto place = places_.find(hash);
  return place != places_.end() && place->second.epoch == epoch;
}

Status DiskTierImpl::put_carried(std::vector<CarriedBlock>& carried) {
  for (CarriedBlock& block : carried) {
    // RocksDB may have flushed it unasked before it gave up.
    if (!lies_in(block.record.hash, block.record.epoch)) {
      const std::vector<std::string_view> forms(block.payloads.begin(), block.payloads.end());
      EMBER_TRY(put_now(block.record, forms, kNew));
    }
    MutexLock lock(state_mutex_);
    given_up_.erase(block.record.hash);
    --lost_blocks_;
  }
  return {};
}

Error DiskTierImpl::failed(const rocksdb::Status& status, const char* what) {
  full_drive_ = full_drive_ || status.IsNoSpace();
  Error error = rocksdb_error(status, doing(what));
  if (error.code != ErrorCode::kBusy) seam_.health->report(status);
  return error;
}

Status DiskTierImpl::write(rocksdb::WriteBatch& batch, bool may_wait) {
  if (compaction_waits_ && ++writes_ >= kWritesBeforeCompaction) let_compact();
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  options.no_slowdown = !may_wait;
  rocksdb::Status status = db_->Write(options, &batch);
  if (status.ok()) {
    dirty_ = true;
    return {};
  }
  Error error = failed(status, "write");
  // A write that is put off: compaction is what the pause is for.
  if (error.code == ErrorCode::kBusy && compaction_waits_) let_compact();
  return error;
}

// A block of 4 GiB and more would count as one less.
DiskTierImpl::Place DiskTierImpl::place_of(const BlockRecord& record) {
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  return {record.epoch, static_cast<uint32_t>(std::min(record.stored_bytes(), kMost)),
          static_cast<uint32_t>(std::min(record.raw_bytes(), kMost))};
}

void DiskTierImpl::forget_block(const BlockHash& hash) {
  if (!all_seen_) erased_.insert(hash);
  auto it = places_.find(hash);
  if (it == places_.end()) return;
  const Place& place = it->second;
  stored_bytes_ -= place.stored_bytes;
  raw_bytes_ -= place.raw_bytes;
  auto epoch = epochs_.find(place.epoch);
  if (epoch != epochs_.end()) {
    epoch->second.live_bytes -= place.stored_bytes;
    --epoch->second.live;
  }
  places_.erase(it);
}

void DiskTierImpl::place_block(const BlockHash& hash, const Place& place) {
  forget_block(hash);
  erased_.erase(hash);
  add_place(hash, place);
}

// Of a block that has none.
void DiskTierImpl::add_place(const BlockHash& hash, const Place& place) {
  places_.put(hash, place);
  stored_bytes_ += place.stored_bytes;
  raw_bytes_ += place.raw_bytes;
  Epoch& epoch = epochs_[place.epoch];
  epoch.live_bytes += place.stored_bytes;
  ++epoch.live;
}

// The epoch that groups of this stream go to. No blob file holds groups of two epochs: dropping one
// would not give its bytes back.
Status DiskTierImpl::open_epoch(Stream stream, uint64_t stored_bytes, uint32_t& epoch) {
  {
    MutexLock lock(state_mutex_);
    uint32_t& open = open_epochs_[stream];
    const uint64_t bytes = open == 0 ? 0 : epochs_[open].bytes;
    if (bytes > 0 && bytes + stored_bytes > sizes_.epoch_bytes) open = 0;
    if (open == 0) {
      EMBER_CHECK(newest_epoch_ < kMaxEpoch, "epoch numbers are used up");
      open = ++newest_epoch_;
      epochs_[open].rewritten = stream == kAgain;
    }
    epoch = open;
  }
  if (memtable_epoch_ != 0 && memtable_epoch_ != epoch) return flush_now();
  return {};
}

Status DiskTierImpl::put_now(BlockRecord& record, std::span<const std::string_view> payloads,
                             Stream stream) {
  const uint64_t stored = record.stored_bytes();
  const uint32_t former_epoch = record.epoch;
  uint32_t epoch = 0;
  EMBER_TRY(open_epoch(stream, stored, epoch));
  record.epoch = epoch;
  const Result<std::string> row = row_of(record);
  if (!row.ok()) {
    record.epoch = former_epoch;
    return row.error();
  }
  rocksdb::WriteBatch batch;
  for (uint32_t group = 0; group < payloads.size(); ++group) {
    batch.Put(data_, data_key(epoch, record.hash, group), payloads[group]);
  }
  batch.Put(meta_, block_key(record.hash), *row);
  {
    MutexLock lock(state_mutex_);
    const Epoch& now = epochs_[epoch];
    const std::string key = epoch_key(epoch);
    batch.Put(meta_, key,
              encode_epoch(key, {now.bytes + stored, now.live + 1, now.files, now.rewritten}));
  }
  Status status = write(batch, stream == kAgain);
  if (!status.ok()) {
    record.epoch = former_epoch;
    return status;
  }
  memtable_epoch_ = epoch;
  MutexLock lock(state_mutex_);
  epochs_[epoch].bytes += stored;
  place_block(record.hash, place_of(record));
  unflushed_erasures_.erase(record.hash);
  given_up_.erase(record.hash);
  unflushed_bytes_ += stored + overhead_bytes(record);
  if (stream == kNew) {
    unflushed_blocks_.push_back(record.hash);
  } else {
    counters_.rewritten_bytes += stored;
  }
  return {};
}

Status DiskTierImpl::put(BlockRecord& record, std::span<const std::string> payloads) {
  EMBER_CHECK(payloads.size() == record.groups.size(), "one payload for each group");
  for (size_t i = 0; i < payloads.size(); ++i) {
    EMBER_CHECK(payloads[i].size() == record.groups[i].stored_bytes, "a payload of another size");
  }
  EMBER_TRY(check_writable());
  EMBER_TRY(check_room(record.stored_bytes()));
  {
    MutexLock lock(state_mutex_);
    if (given_up_.contains(record.parent)) {
      return {ErrorCode::kBusy, doing("the parent of block " + record.hash.hex() +
                                      " was lost")};
    }
  }
  std::vector<std::string> sealed;
  EMBER_ASSIGN(const std::vector<std::string_view> forms, stored_forms(record, payloads, sealed));
  EMBER_TRY(put_now(record, forms, kNew));
  MutexLock lock(state_mutex_);
  counters_.accepted_bytes += record.stored_bytes();
  return {};
}

Status DiskTierImpl::erase(const BlockHash& hash) {
  EMBER_TRY(check_writable());
  return erase_now(hash);
}

Status DiskTierImpl::erase_now(const BlockHash& hash) {
  rocksdb::WriteBatch batch;
  // The groups stay where they are until their epoch is retired.
  batch.Delete(meta_, block_key(hash));
  batch.Delete(meta_, touch_key(hash));
  // Stalls if it must: whoever erases needs the room, and has forgotten the block already.
  EMBER_TRY(write(batch, true));
  MutexLock lock(state_mutex_);
  forget_block(hash);
  unflushed_erasures_.insert(hash);
  unflushed_bytes_ += kSmallRowBytes;
  return {};
}

// Opening anew brings back what was erased and not flushed. A child that came back would outlive
// its parent, since nobody else knows of it any more.
Status DiskTierImpl::erase_again() {
  std::unordered_set<BlockHash> erased;
  {
    MutexLock lock(state_mutex_);
    erased = unflushed_erasures_;
  }
  for (const BlockHash& hash : erased) EMBER_TRY(erase_now(hash));
  return {};
}

Status DiskTierImpl::touch(std::span<const std::pair<BlockHash, TouchRecord>> touches) {
  EMBER_TRY(check_writable());
  if (needed_bytes(touches.size() * kSmallRowBytes) > options_.limit_bytes) {
    return {ErrorCode::kCapacity, doing("no room for touch records")};
  }
  rocksdb::WriteBatch batch;
  {
    MutexLock lock(state_mutex_);
    for (const auto& [hash, touch] : touches) {
      // The touch of a block that is gone would stay for ever.
      if (places_.count(hash) == 0 && (all_seen_ || erased_.count(hash) > 0)) continue;
      std::string key = touch_key(hash);
      batch.Put(meta_, key, encode_touch(key, touch));
    }
  }
  if (batch.Count() == 0) return {};
  EMBER_TRY(write(batch, false));
  MutexLock lock(state_mutex_);
  unflushed_bytes_ += touches.size() * kSmallRowBytes;
  return {};
}

Status DiskTierImpl::flush_now() {
  rocksdb::Status status = flush_families(*db_, {meta_, data_}, *seam_.health);
  if (!status.ok()) return failed(status, "flush");
  dirty_ = false;
  MutexLock lock(state_mutex_);
  unflushed_bytes_ = 0;
  unflushed_blocks_.clear();
  unflushed_erasures_.clear();
  const auto flushed = epochs_.find(std::exchange(memtable_epoch_, 0));
  if (flushed != epochs_.end()) ++flushed->second.files;
  return {};
}

Status DiskTierImpl::flush() {
  EMBER_TRY(check_writable());
  drop_old_walks();
  erase_forgotten();
  if (dirty_) EMBER_TRY(flush_now());
  keep_ballast();
  MutexLock lock(state_mutex_);
  uint64_t lost = std::exchange(lost_blocks_, 0);
  if (lost == 0) return {};
  return {ErrorCode::kCancelled, doing(std::to_string(lost) + " accepted blocks were lost when the "
                                       "database had to be opened anew")};
}

}  // namespace ember
