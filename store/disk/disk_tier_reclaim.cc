// Disk tier: making room, a whole epoch at a time.
#include <algorithm>
#include <chrono>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "store/disk/disk_tier_impl.h"

namespace ember {
namespace {

// What opening a small database writes: a manifest, an options file.
constexpr uint64_t kOpeningBytes = 128u << 10;
// An epoch that was flushed more often has small files, of which no drive likes thousands.
constexpr uint32_t kMostFiles = 8;
// What one slice of reclaiming puts again at least, in about 10 ms.
constexpr uint64_t kLeastSlice = uint64_t{8} << 20;
constexpr int64_t kUnreadablePauseUs = 10'000'000;
constexpr int kMostLooks = 250;  // of 2 ms, for files that are about to be deleted
constexpr size_t kLooksASample = 4;

// Of epochs from the oldest to the newest: the half with the largest dead share, and the oldest.
void keep_likely(std::vector<DiskTier::EpochSample>& epochs, size_t most) {
  if (epochs.size() <= most) return;
  const auto live_share = [](const DiskTier::EpochSample& epoch) {
    return static_cast<double>(epoch.live_bytes) /
           static_cast<double>(std::max<uint64_t>(1, epoch.bytes));
  };
  const auto newer = epochs.begin() + static_cast<std::ptrdiff_t>(most / 2);
  std::sort(newer, epochs.end(), [&](const auto& a, const auto& b) {
    return live_share(a) < live_share(b);
  });
  epochs.resize(most);
}

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

// The largest dead share; of equals the oldest.
DiskTierImpl::Choice DiskTierImpl::choose_epoch() const {
  const int64_t now = system_clock().now_us();
  MutexLock lock(state_mutex_);
  Choice best;
  for (const auto& [number, epoch] : epochs_) {
    // An empty row is an epoch whose metadata was lost: what lies in it is not known, so drop it.
    if (epoch.bytes == 0 && !is_open(number)) return {number, 1};
    if (now < epoch.not_before_us) continue;
    // An open one is as large as it will be.
    const uint64_t least = is_open(number) ? sizes_.epoch_bytes : 0;
    const uint64_t bytes = std::max(epoch.bytes, least);
    const double share = static_cast<double>(epoch.dead_bytes()) / static_cast<double>(bytes);
    if (share > best.dead_share) best = {number, share};
  }
  return best;
}

double DiskTierImpl::next_dead_share() const {
  {
    MutexLock lock(state_mutex_);
    if (!all_seen_) return 0;
  }
  return choose_epoch().dead_share;
}

// The first blocks of the walk are as good a sample as any, since hashes are random; it ends after
// some times what that takes, so that an epoch with few live blocks has fewer in it.
std::vector<DiskTier::EpochSample> DiskTierImpl::sample_epochs(size_t most_epochs,
                                                               size_t most_blocks) {
  const int64_t now = system_clock().now_us();
  std::vector<EpochSample> samples;
  MutexLock lock(state_mutex_);
  if (!all_seen_) return samples;
  for (const auto& [number, epoch] : epochs_) {
    if (is_open(number) || now < epoch.not_before_us || number == reclaim_.epoch) continue;
    samples.push_back({number, epoch.bytes, epoch.live_bytes, {}});
  }
  keep_likely(samples, most_epochs);
  std::unordered_map<uint32_t, size_t> at;
  for (size_t i = 0; i < samples.size(); ++i) at[samples[i].epoch] = i;
  size_t looks = kLooksASample * samples.size() * most_blocks;
  for (auto place = places_.begin(); place != places_.end() && looks > 0; ++place, --looks) {
    const auto found = at.find(place->second.epoch);
    if (found == at.end() || samples[found->second].live.size() >= most_blocks) continue;
    samples[found->second].live.push_back(place->first);
  }
  return samples;
}

std::vector<DiskTier::LiveBlock> DiskTierImpl::live_blocks(uint32_t epoch) {
  std::vector<LiveBlock> blocks;
  MutexLock lock(state_mutex_);
  for (const auto& [hash, place] : places_) {
    if (place.epoch == epoch) blocks.push_back({hash, place.stored_bytes});
  }
  return blocks;
}

// A sealed epoch that is worth a rewriting for the number of its files alone; 0: none.
uint32_t DiskTierImpl::crowded_epoch() const {
  MutexLock lock(state_mutex_);
  for (const auto& [number, epoch] : epochs_) {
    if (!is_open(number) && !epoch.rewritten && epoch.files > kMostFiles) return number;
  }
  return 0;
}

Status DiskTierImpl::make_room(uint64_t stored_bytes) {
  bool more = true;
  while (more) {
    EMBER_ASSIGN(more, make_room_slice(stored_bytes));
  }
  return {};
}

Result<bool> DiskTierImpl::make_room_slice(uint64_t stored_bytes) {
  EMBER_TRY(check_writable());
  EMBER_TRY(see_all_places());
  if (reclaim_.epoch == 0) {
    // What waits in memory is counted generously; on disk it may fit.
    if (!has_room(stored_bytes) && dirty_) EMBER_TRY(flush_now());
    if (has_room(stored_bytes)) return false;
    const uint32_t epoch = choose_epoch().epoch;
    if (epoch == 0) return check_room(stored_bytes).error();
    EMBER_TRY(begin_reclaim(epoch, false));
  }
  EMBER_TRY(reclaim_slice());
  // The newest blob file goes only when something is flushed after it.
  if (reclaim_.epoch == 0 && dirty_ && !has_room(stored_bytes)) EMBER_TRY(flush_now());
  return reclaim_.epoch != 0 || !has_room(stored_bytes);
}

Result<bool> DiskTierImpl::upkeep() {
  EMBER_TRY(check_writable());
  EMBER_TRY(see_all_places());
  if (reclaim_.epoch == 0) {
    keep_ballast();
    const uint32_t epoch = crowded_epoch();
    if (epoch == 0) return false;
    EMBER_TRY(begin_reclaim(epoch, true));
  }
  EMBER_TRY(reclaim_slice());
  return reclaim_.epoch != 0 || crowded_epoch() != 0;
}

// Errors: kCapacity when what is live in the epoch fits beside it neither within the limit nor on
// the drive.
Status DiskTierImpl::begin_reclaim(uint32_t epoch, bool crowded) {
  if (memtable_epoch_ == epoch) EMBER_TRY(flush_now());
  Reclaim reclaim{.epoch = epoch, .crowded = crowded, .live = {}, .next = 0};
  uint64_t live_bytes;
  {
    MutexLock lock(state_mutex_);
    for (uint32_t& open : open_epochs_) {
      if (open == epoch) open = 0;
    }
    live_bytes = epochs_[epoch].live_bytes;
  }
  for (const LiveBlock& block : live_blocks(epoch)) reclaim.live.push_back(block.hash);
  if (!reclaim.live.empty()) {
    const uint64_t more = live_bytes + reclaim.live.size() * uint64_t{4096};
    if (more + sizes_.margin_bytes > free_bytes()) static_cast<void>(release_ballast());
    if (needed_bytes(more) > seam_.files->ledger().limit_bytes() ||
        more + sizes_.margin_bytes > free_bytes()) {
      return {ErrorCode::kCapacity, doing("the " + std::to_string(live_bytes) +
                                          " live bytes of epoch " + std::to_string(epoch) +
                                          " do not fit beside it")};
    }
  }
  // In the order of keys, so that a run is the same every time and reads go forward.
  std::sort(reclaim.live.begin(), reclaim.live.end());
  reclaim_ = std::move(reclaim);
  return {};
}

Result<bool> DiskTierImpl::reclaim_slice() {
  const uint64_t slice = std::max(kLeastSlice, sizes_.epoch_bytes / 8);
  const auto put_again = [this] {
    MutexLock lock(state_mutex_);
    return counters_.rewritten_bytes;
  };
  const uint64_t before = put_again();
  Status status;
  while (status.ok() && reclaim_.next < reclaim_.live.size() && put_again() - before < slice) {
    status = rewrite_block(reclaim_.live[reclaim_.next++]);
  }
  if (status.ok() && reclaim_.next < reclaim_.live.size()) return true;
  const Reclaim done = std::exchange(reclaim_, {});
  // Given up half way, an epoch is only emptier than it was.
  EMBER_TRY(status);
  // A table with this epoch's end and groups of a newer one would overlap all epochs between, and
  // to compact it would write all their tables again.
  if (memtable_epoch_ != 0) EMBER_TRY(flush_now());
  rocksdb::WriteBatch batch;
  EMBER_TRY(drop_epoch(done.epoch, batch));
  lower_ledger_limit();
  keep_ballast();
  MutexLock lock(state_mutex_);
  if (done.crowded) ++counters_.crowded_epochs;
  return false;
}

// At once; what was being reclaimed is only emptier than it was.
Status DiskTierImpl::retire(uint32_t epoch) {
  EMBER_TRY(begin_reclaim(epoch, false));
  while (reclaim_.epoch != 0) EMBER_TRY(reclaim_slice());
  return {};
}

// Only what is proven gets a new life. Damage is kept aside, and its record stays: a hole, healed
// by a new commit; its groups go with the epoch. What the drive does not give is no damage: its
// epoch is left in peace for a while.
Status DiskTierImpl::rewrite_block(const BlockHash& hash) {
  {
    MutexLock lock(state_mutex_);
    const auto place = places_.find(hash);
    if (place == places_.end() || place->second.epoch != reclaim_.epoch) return {};
  }
  BlockRecord record;
  std::vector<std::string> payloads;
  Status proven = read_proven(hash, record, payloads);
  if (!proven.ok()) proven = read_proven(hash, record, payloads);
  if (!proven.ok() && proven.error().code == ErrorCode::kIo) {
    MutexLock lock(state_mutex_);
    epochs_[reclaim_.epoch].not_before_us = system_clock().now_us() + kUnreadablePauseUs;
    return proven.error();
  }
  if (!proven.ok()) {
    lose_block(hash, proven.error());
    return {};
  }
  // As they are stored: sealed groups stay sealed.
  const std::vector<std::string_view> forms(payloads.begin(), payloads.end());
  return put_now(record, forms, kAgain);
}

// RocksDB deletes a file in the background when another of its jobs has just looked at it; until
// then it would seem as if more had to go.
void DiskTierImpl::await_deletions() const {
  for (int look = 0; look < kMostLooks; ++look) {
    uint64_t live = 0;
    const std::string& property = rocksdb::DB::Properties::kLiveBlobFileSize;
    const bool known = db_->GetIntProperty(data_, property, &live);
    if (!known || seam_.files->ledger().bytes_of(".blob") <= live) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Status DiskTierImpl::drop_epoch(uint32_t epoch, rocksdb::WriteBatch& batch) {
  std::string begin = data_epoch_key(epoch);
  std::string end = data_epoch_key(epoch + 1);
  // The range and not the known keys: orphans, whose metadata was lost, go too.
  batch.DeleteRange(data_, begin, end);
  batch.Put(data_, data_floor_key(), rocksdb::Slice());
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
  if (!status.ok()) return failed(status, "retiring an epoch");
  await_deletions();
  // Only now: after a crash before this the row says that there is something to retire.
  rocksdb::WriteBatch row;
  row.Delete(meta_, epoch_key(epoch));
  EMBER_TRY(write(row, true));
  MutexLock lock(state_mutex_);
  epochs_.erase(epoch);
  ++counters_.retired_epochs;
  return {};
}

}  // namespace ember
