// Disk tier: making sure that what was forgotten is in no file.
#include "store/disk/disk_tier_impl.h"
#include "store/disk/rocksdb_status.h"

namespace ember {
namespace {

// Noted at once; whatever is found beyond them waits for the next opening.
constexpr size_t kMostForgottenRows = 1u << 16;

}  // namespace

// Rows whose key was destroyed before they were erased, by a process that ended in between. Their
// groups are in no place, thus dead bytes of their epochs.
void DiskTierImpl::note_forgotten(std::string_view key) {
  MutexLock lock(state_mutex_);
  if (!read_only_ && forgotten_rows_.size() < kMostForgottenRows) forgotten_rows_.emplace_back(key);
}

// What cannot be erased now waits for the next opening: nobody can read it.
void DiskTierImpl::erase_forgotten() {
  std::vector<std::string> rows;
  {
    MutexLock lock(state_mutex_);
    rows.swap(forgotten_rows_);
    // The hash may have been put again since, under a new key.
    std::erase_if(rows, [this](const std::string& row) EMBER_REQUIRES(state_mutex_) {
      const std::optional<BlockHash> hash = hash_of_key(row);
      return !hash || places_.count(*hash) > 0;
    });
  }
  if (rows.empty()) return;
  rocksdb::WriteBatch batch;
  for (const std::string& row : rows) {
    batch.Delete(meta_, row);
    batch.Delete(meta_, touch_key(*hash_of_key(row)));
  }
  static_cast<void>(write(batch, true).ok());
}

Status DiskTierImpl::retire_epochs(std::span<const uint32_t> epochs) {
  for (const uint32_t epoch : epochs) EMBER_TRY(retire_epoch(epoch));
  return compact();
}

Status DiskTierImpl::retire_epoch(uint32_t epoch) {
  EMBER_TRY(check_writable());
  EMBER_TRY(see_all_places());
  if (dirty_) EMBER_TRY(flush_now());
  {
    MutexLock lock(state_mutex_);
    if (!epochs_.contains(epoch)) return {};
  }
  return retire(epoch);
}

// Erased rows, and the keys of what was retired, are in older tables still.
Status DiskTierImpl::compact() {
  EMBER_TRY(check_writable());
  EMBER_TRY(flush_now());
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  options.allow_write_stall = true;
  rocksdb::Status status = db_->CompactRange(options, meta_, nullptr, nullptr);
  // Files are deleted by a background thread some time later; this deletes what is obsolete now.
  if (status.ok()) status = db_->DisableFileDeletions();
  if (status.ok()) status = db_->EnableFileDeletions(true);
  return rocksdb_result(status, doing("compaction of the metadata"));
}

}  // namespace ember
