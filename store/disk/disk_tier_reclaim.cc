// Disk tier: making room, a whole epoch at a time.
#include <algorithm>

#include "base/check.h"
#include "store/disk/disk_tier_impl.h"
#include "store/disk/rocksdb_status.h"

namespace ember {
namespace {

// What opening a small database writes: a manifest, an options file.
constexpr uint64_t kOpeningBytes = 128u << 10;

}  // namespace

// A store that is larger than its limit (which may have been lowered) can still be opened and
// shrunk: until then the ledger allows what there is and a little more, and never rises again.
void DiskTierImpl::lower_ledger_limit() {
  FileLedger& ledger = seam_.files->ledger();
  uint64_t limit = options_.limit_bytes;
  bool above = ledger.file_bytes() + kOpeningBytes > limit;
  if (above) limit = ledger.file_bytes() + sizes_.margin_bytes;
  bool lowered_before = ledger.limit_bytes() > options_.limit_bytes;
  ledger.set_limit_bytes(lowered_before ? std::min(ledger.limit_bytes(), limit) : limit);
}

// The oldest epoch of which a fourth is dead; else the one with most dead bytes; 0 when none has.
uint32_t DiskTierImpl::choose_epoch() const {
  MutexLock lock(state_mutex_);
  uint32_t best = 0;
  uint64_t most_dead = 0;
  for (const auto& [number, epoch] : epochs_) {
    // An empty row is an epoch whose metadata was lost: what lies in it is not known, so drop it.
    if (epoch.bytes == 0 && number != current_epoch_) return number;
    if (epoch.dead_bytes() > 0 && epoch.dead_bytes() >= epoch.bytes / 4) return number;
    if (epoch.dead_bytes() > most_dead) {
      most_dead = epoch.dead_bytes();
      best = number;
    }
  }
  return best;
}

Status DiskTierImpl::make_room(uint64_t stored_bytes) {
  EMBER_TRY(check_writable());
  EMBER_TRY(see_all_places());
  if (dirty_) EMBER_TRY(flush_now());
  while (!has_room(stored_bytes)) {
    uint32_t epoch = choose_epoch();
    if (epoch == 0 && dirty_) {
      // The newest blob file goes only when something is flushed after it.
      EMBER_TRY(flush_now());
      continue;
    }
    if (epoch == 0) {
      return {ErrorCode::kCapacity,
              doing("no epoch has anything erased, and " + std::to_string(stored_bytes) +
                    " bytes do not fit within " + std::to_string(options_.limit_bytes))};
    }
    EMBER_TRY(retire(epoch));
    lower_ledger_limit();
  }
  return {};
}

Status DiskTierImpl::retire(uint32_t epoch) {
  uint64_t live_bytes;
  uint32_t live;
  {
    MutexLock lock(state_mutex_);
    live_bytes = epochs_[epoch].live_bytes;
    live = epochs_[epoch].live;
    if (epoch == current_epoch_) ++current_epoch_;
  }
  uint64_t limit = seam_.files->ledger().limit_bytes();
  if (live > 0 && needed_bytes(live_bytes + live * uint64_t{4096}) > limit) {
    return {ErrorCode::kCapacity, doing("the " + std::to_string(live_bytes) +
                                        " live bytes of its oldest epoch do not fit beside it")};
  }
  EMBER_TRY(rewrite_live(epoch));
  EMBER_TRY(drop_epoch(epoch));
  MutexLock lock(state_mutex_);
  ++retired_epochs_;
  return {};
}

Status DiskTierImpl::rewrite_live(uint32_t epoch) {
  std::vector<BlockHash> live;
  {
    MutexLock lock(state_mutex_);
    for (const auto& [hash, place] : places_) {
      if (place.epoch == epoch) live.push_back(hash);
    }
  }
  // In the order of keys, so that a run is the same every time and reads go forward.
  std::sort(live.begin(), live.end());
  for (const BlockHash& hash : live) EMBER_TRY(rewrite_block(hash));
  return {};
}

// Only what is proven gets a new life. Damage is kept aside, and its record stays: a hole, healed
// by a new commit; its groups go with the epoch.
Status DiskTierImpl::rewrite_block(const BlockHash& hash) {
  BlockRecord record;
  std::vector<std::string> payloads;
  Status proven = read_proven(hash, record, payloads);
  if (!proven.ok()) proven = read_proven(hash, record, payloads);
  if (!proven.ok()) {
    lose_block(hash, proven.error());
    return {};
  }
  // As they are stored: sealed groups stay sealed.
  const std::vector<std::string_view> forms(payloads.begin(), payloads.end());
  EMBER_TRY(put_now(record, forms, true));
  MutexLock lock(state_mutex_);
  rewritten_bytes_ += record.stored_bytes();
  return {};
}

Status DiskTierImpl::drop_epoch(uint32_t epoch) {
  std::string begin = data_epoch_key(epoch);
  std::string end = data_epoch_key(epoch + 1);
  rocksdb::WriteBatch batch;
  // The range and not the known keys: orphans, whose metadata was lost, go too.
  batch.DeleteRange(data_, begin, end);
  EMBER_TRY(write(batch, true));
  EMBER_TRY(flush_now());
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  options.allow_write_stall = true;
  rocksdb::Slice from(begin), to(end);
  rocksdb::Status status = db_->CompactRange(options, data_, &from, &to);
  // Files are deleted by a background thread some time later; this deletes what is obsolete now.
  if (status.ok()) status = db_->DisableFileDeletions();
  if (status.ok()) status = db_->EnableFileDeletions(true);
  if (!status.ok()) {
    seam_.health->report(status.ToString());
    return rocksdb_error(status, doing("retiring an epoch"));
  }
  // Only now: after a crash before this the row says that there is something to retire.
  rocksdb::WriteBatch row;
  row.Delete(meta_, epoch_key(epoch));
  EMBER_TRY(write(row, true));
  MutexLock lock(state_mutex_);
  epochs_.erase(epoch);
  return {};
}

}  // namespace ember
