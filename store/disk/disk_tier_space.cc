// Disk tier: the drive below: the floor of free space, the ballast, and what goes when it is full.
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "store/disk/disk_tier_impl.h"
#include "store/disk/rocksdb_status.h"

namespace ember {
namespace {

constexpr size_t kScanStep = 4096;  // records

}  // namespace

uint64_t default_free_floor_bytes(uint64_t file_system_bytes) {
  return std::min(file_system_bytes / 32, uint64_t{1} << 30);
}

// The folder's own path: a relative one, or one through a link, may lead elsewhere later.
void DiskTierImpl::find_file_system() {
  std::error_code error;
  real_directory_ = std::filesystem::canonical(options_.directory, error).string();
  if (error) real_directory_ = options_.directory;
  struct statvfs info {};
  uint64_t size = 0;
  if (::statvfs(real_directory_.c_str(), &info) == 0) {
    size = uint64_t{info.f_blocks} * info.f_frsize;
  }
  free_floor_bytes_ = options_.free_floor_bytes.value_or(default_free_floor_bytes(size));
}

uint64_t DiskTierImpl::free_bytes() const {
  uint64_t bytes = 0;
  const rocksdb::IOStatus status = seam_.files->target()->GetFreeSpace(
      real_directory_, rocksdb::IOOptions(), &bytes, nullptr);
  return status.ok() ? bytes : std::numeric_limits<uint64_t>::max() / 2;
}

uint64_t DiskTierImpl::below_floor_bytes(uint64_t more_bytes) const {
  uint64_t unflushed;
  {
    MutexLock lock(state_mutex_);
    unflushed = unflushed_bytes_;
  }
  const uint64_t needed = free_floor_bytes_ + unflushed + more_bytes + sizes_.margin_bytes +
                          seam_.files->ledger().rewritable_bytes() + ballast_.missing_bytes();
  const uint64_t free = free_bytes();
  return needed > free ? needed - free : 0;
}

bool DiskTierImpl::release_ballast() {
  if (ballast_.release() == 0) return false;
  MutexLock lock(state_mutex_);
  ++counters_.ballast_releases;
  return true;
}

void DiskTierImpl::keep_ballast() {
  if (ballast_.missing_bytes() == 0 || read_only_) return;
  uint64_t unflushed;
  {
    MutexLock lock(state_mutex_);
    unflushed = unflushed_bytes_;
  }
  if (free_bytes() < ballast_.bytes() + unflushed + sizes_.margin_bytes) return;
  static_cast<void>(ballast_.make());  // where it does not fit, has_room counts it as missing
}

Result<std::vector<StoredBlock>> DiskTierImpl::stored_blocks() {
  EMBER_TRY(see_all_places());
  std::vector<StoredBlock> blocks;
  const auto keep = [&blocks](const BlockRecord& record, const TouchRecord&) {
    blocks.push_back({record.hash, record.parent, record.position, record.epoch,
                      record.stored_bytes()});
  };
  for (ScanFrom from; from.share < kScanShares; from = {from.share + 1, {}}) {
    for (bool done = false; !done;) {
      EMBER_ASSIGN(ScanStep step, scan_now(from, kScanStep, keep));
      from.cursor = std::move(step.cursor);
      done = step.done;
    }
  }
  return blocks;
}

// A write found the drive full and RocksDB writes again, thanks to the ballast or to others who
// made space: before anything else there must be room for the next such day.
Status DiskTierImpl::leave_full_drive() {
  if (!full_drive_) return {};
  while (free_bytes() < ballast_.missing_bytes() + sizes_.margin_bytes) {
    {
      MutexLock lock(state_mutex_);
      if (epochs_.empty()) break;
    }
    EMBER_TRY(lose_epoch());
    EMBER_TRY(flush_now());  // the newest blob file goes only when something is flushed after it
    await_deletions();
  }
  full_drive_ = false;
  keep_ballast();
  return {};
}

Status DiskTierImpl::lose_epoch() {
  std::vector<uint32_t> epochs;
  {
    MutexLock lock(state_mutex_);
    for (const auto& [number, epoch] : epochs_) epochs.push_back(number);
  }
  EMBER_ASSIGN(const std::vector<StoredBlock> blocks, stored_blocks());
  const uint32_t epoch = epoch_to_lose(blocks, epochs);
  const std::unordered_set<BlockHash> holes = holes_after(blocks, epoch);
  rocksdb::WriteBatch batch;
  std::vector<BlockHash> lost, erased;
  for (const StoredBlock& block : blocks) {
    if (block.epoch != epoch && block.epoch != 0) continue;
    if (block.epoch == epoch) lost.push_back(block.hash);
    if (!holes.contains(block.hash)) {
      erased.push_back(block.hash);
      batch.Delete(meta_, block_key(block.hash));
      batch.Delete(meta_, touch_key(block.hash));
    } else if (block.epoch != 0) {
      EMBER_ASSIGN(std::optional<BlockRecord> record, read_record(block.hash));
      if (!record) continue;
      record->epoch = 0;
      EMBER_ASSIGN(const std::string row, row_of(*record));
      batch.Put(meta_, block_key(block.hash), row);
    }
  }
  {
    MutexLock lock(state_mutex_);
    for (uint32_t& open : open_epochs_) {
      if (open == epoch) open = 0;
    }
    for (const BlockHash& hash : lost) forget_block(hash);
    // Whatever becomes of this flush: nobody knows of them any more.
    unflushed_erasures_.insert(erased.begin(), erased.end());
    lost_.insert(lost_.end(), lost.begin(), lost.end());
    given_up_.insert(lost.begin(), lost.end());
    counters_.lost_blocks += lost.size();
    counters_.lost_epochs += lost.empty() ? 0u : 1u;
  }
  if (reclaim_.epoch == epoch) reclaim_ = {};
  return drop_epoch(epoch, batch);
}

}  // namespace ember
