// Disk tier: walking through its metadata, at opening and for listings.
#include <rocksdb/iterator.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "store/disk/disk_tier_impl.h"
#include "store/disk/rocksdb_status.h"

namespace ember {
namespace {

constexpr int kRetries = 3;  // of a walk
constexpr size_t kReadaheadBytes = 512u << 10;
constexpr size_t kTouchReadaheadBytes = 64u << 10;  // touch records are a 16th of the others
constexpr size_t kPlacesAhead = 8;
constexpr int64_t kWalkPatienceUs = 30'000'000;  // for the next step of a walk
constexpr size_t kWalkStep = 4096;  // records that see_all_places takes at once

rocksdb::ReadOptions walk_options(MetaKind kind) {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  options.readahead_size = kind == MetaKind::kTouch ? kTouchReadaheadBytes : kReadaheadBytes;
  return options;
}

// The first four bytes after the kind, as a number.
uint32_t key_number(std::string_view key) {
  std::string padded(key.substr(1, 4));
  padded.resize(4, '\0');
  return __builtin_bswap32(load_unaligned<uint32_t>(padded.data()));
}

bool can_seek(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* meta, const std::string& key) {
  rocksdb::ReadOptions options = walk_options(static_cast<MetaKind>(key[0]));
  options.readahead_size = 0;  // one block is looked at
  std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(options, meta));
  it->Seek(key);
  return it->status().ok();
}

std::string first_key(MetaKind kind) { return std::string(1, static_cast<char>(kind)); }

// Of the keys of a kind, where a share's begin.
std::string share_key(MetaKind kind, uint32_t share) {
  std::string key = first_key(kind);
  if (share < DiskTier::kScanShares) {
    key.push_back(static_cast<char>(share * (256 / DiskTier::kScanShares)));
  } else {
    ++key[0];
  }
  return key;
}

}  // namespace

// The rows of one kind, in the order of their keys, from `from` on and before `end`. A damaged
// table block hides some keys: the walk goes on with the first one behind it.
class MetaWalk {
 public:
  MetaWalk(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* meta, std::string from, std::string end)
      : db_(db), meta_(meta), last_(std::move(from)), end_(std::move(end)) {
    seek();
  }

  bool valid() const { return valid_; }
  std::string_view key() const { return last_; }
  std::string_view value() const { return it_->value().ToStringView(); }
  uint64_t gaps() const { return gaps_; }
  const rocksdb::Status& damage() const { return damage_; }

  void next() {
    it_->Next();
    settle();
  }

 private:
  void seek() {
    it_.reset(db_.NewIterator(walk_options(static_cast<MetaKind>(last_[0])), meta_));
    it_->Seek(last_);
    settle();
  }
  void settle() {
    const char kind = last_[0];
    valid_ = it_->Valid() && it_->key().ToStringView() < end_;
    if (valid_) {
      last_.assign(it_->key().data(), it_->key().size());
      shown_ = true;
      return;
    }
    if (it_->status().ok()) return;
    if (it_->status().IsIOError() && retries_ < kRetries) return look_once_more();
    damage_ = it_->status();
    ++gaps_;
    const std::optional<uint32_t> behind =
        readable_from(db_, meta_, static_cast<MetaKind>(kind), key_number(last_));
    if (!behind) return;
    last_ = number_key(static_cast<MetaKind>(kind), *behind);
    if (last_ < end_) seek();
  }

  // What a drive did not give once is not damage yet: it may give it now.
  void look_once_more() {
    ++retries_;
    if (shown_) last_.push_back('\0');
    shown_ = false;
    seek();
  }

  rocksdb::DB& db_;
  rocksdb::ColumnFamilyHandle* meta_;
  std::unique_ptr<rocksdb::Iterator> it_;
  std::string last_;
  std::string end_;
  bool valid_ = false;
  bool shown_ = false;  // `last_` is a row that was there, not a place between rows
  int retries_ = 0;
  uint64_t gaps_ = 0;
  rocksdb::Status damage_;
};

// Block records of a share and their touch records, which lie in the same order.
struct DiskTierImpl::RecordWalk {
  RecordWalk(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* meta, uint32_t share, std::string from)
      : blocks(db, meta, from, share_key(MetaKind::kBlock, share + 1)),
        touches(db, meta, touch_place(std::move(from)), share_key(MetaKind::kTouch, share + 1)) {}

  // The place of the touch record of a block's key.
  static std::string touch_place(std::string key) {
    key[0] = static_cast<char>(MetaKind::kTouch);
    return key;
  }
  // That of the block where `blocks` stands. A lost one costs an age and a count, nothing else.
  TouchRecord touch() {
    const std::string_view hash = blocks.key().substr(1);
    int order = -1;
    while (touches.valid() && (order = touches.key().substr(1).compare(hash)) < 0) touches.next();
    if (!touches.valid() || order != 0) return {};
    return decode_touch(touches.key(), touches.value()).value_or(TouchRecord{});
  }

  MetaWalk blocks;
  MetaWalk touches;
  uint64_t told_gaps = 0;  // of blocks.gaps(), counted by earlier steps
  int64_t left_us = 0;     // when the last step ended
};

// By growing steps past the damage, then by halves back to its end.
std::optional<uint32_t> readable_from(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* meta,
                                      MetaKind kind, uint32_t from) {
  constexpr uint64_t kEnd = uint64_t{1} << 32;
  uint64_t hidden = from, readable = from;
  for (uint64_t step = 1; readable < kEnd; step *= 4) {
    readable = std::min(kEnd, hidden + step);
    if (readable == kEnd) break;
    if (can_seek(db, meta, number_key(kind, static_cast<uint32_t>(readable)))) break;
    hidden = readable;
  }
  while (readable - hidden > 1) {
    const uint64_t middle = hidden + (readable - hidden) / 2;
    const bool good = can_seek(db, meta, number_key(kind, static_cast<uint32_t>(middle)));
    (good ? readable : hidden) = middle;
  }
  if (readable == kEnd) return std::nullopt;
  return static_cast<uint32_t>(readable);
}

Status DiskTierImpl::load_state(bool all) {
  uint64_t gaps = 0;
  uint64_t live = 0;
  {
    MutexLock lock(state_mutex_);
    places_.clear();
    epochs_.clear();
    erased_.clear();
    stored_bytes_ = raw_bytes_ = 0;
    all_seen_ = false;
    seen_ = {};
    records_hidden_ = false;
    damage_note_.clear();
    const std::string first = first_key(MetaKind::kEpoch);
    MetaWalk walk(*db_, meta_, first, share_key(MetaKind::kEpoch, kScanShares));
    for (; walk.valid(); walk.next()) {
      const std::optional<uint32_t> epoch = epoch_of_key(walk.key());
      if (!epoch) continue;
      // A damaged row still names its epoch: all of it counts as dead.
      const EpochRow row = decode_epoch(walk.key(), walk.value()).value_or(EpochRow{});
      Epoch& state = epochs_[*epoch];
      state.bytes = row.bytes;
      state.files = row.files;
      state.rewritten = row.rewritten;
      live += row.live;
    }
    // No more of them than the files have room for, whatever a row says.
    places_.reserve(std::min(live, seam_.files->ledger().file_bytes() / sizeof(RecordHead)));
    gaps = walk.gaps();
    if (gaps > 0) damage_note_ = "some epoch rows are unreadable: " + walk.damage().ToString();
  }
  // Each record's epoch has a row; only where rows are lost do the records have to tell the newest.
  if (all || gaps > 0) EMBER_TRY(see_all_places());
  if (all) let_compact();
  MutexLock lock(state_mutex_);
  newest_epoch_ = epochs_.empty() ? 0 : epochs_.rbegin()->first;
  const auto last = epochs_.find(newest_epoch_);
  const bool goes_on = last != epochs_.end() && !last->second.rewritten &&
                       last->second.bytes < sizes_.epoch_bytes;
  open_epochs_ = {goes_on ? newest_epoch_ : 0, 0};
  return {};
}

Status DiskTierImpl::see_all_places() {
  for (uint32_t share = 0; share < kScanShares; ++share) {
    while (true) {
      ScanFrom from{share, {}};
      {
        MutexLock lock(state_mutex_);
        if (all_seen_) return {};
        if (seen_[share].all) break;
        from.cursor = seen_[share].up_to;
      }
      EMBER_TRY(scan_now(from, kWalkStep, [](const BlockRecord&, const TouchRecord&) {}));
    }
  }
  return {};
}

Result<DiskTier::ScanStep> DiskTierImpl::scan(const ScanFrom& from, size_t most,
                                              const RecordVisitor& visit) {
  EMBER_CHECK(from.share < kScanShares, "no such share of the walk");
  std::shared_lock hold(db_mutex_);
  if (db_ == nullptr) return Error{ErrorCode::kIo, doing("closed: " + seam_.health->text())};
  return scan_now(from, most, visit);
}

// The walk of the step before, where this one goes on from it: a new one costs reads of its own in
// every table.
std::shared_ptr<DiskTierImpl::RecordWalk> DiskTierImpl::take_walk(const ScanFrom& from) {
  {
    MutexLock lock(walk_mutex_);
    std::shared_ptr<RecordWalk>& left = walks_[from.share];
    if (left != nullptr && left->blocks.key() == from.cursor) return std::exchange(left, nullptr);
  }
  std::string first = from.cursor.empty() ? share_key(MetaKind::kBlock, from.share) : from.cursor;
  return std::make_shared<RecordWalk>(*db_, meta_, from.share, std::move(first));
}

// On the write lane, where the database is closed too.
void DiskTierImpl::drop_old_walks() {
  const int64_t now_us = system_clock().now_us();
  std::vector<std::shared_ptr<RecordWalk>> old;  // goes without the mutex
  MutexLock lock(walk_mutex_);
  for (std::shared_ptr<RecordWalk>& walk : walks_) {
    if (walk != nullptr && now_us - walk->left_us > kWalkPatienceUs) old.push_back(std::move(walk));
  }
}

Result<DiskTier::ScanStep> DiskTierImpl::scan_now(const ScanFrom& from, size_t most,
                                                  const RecordVisitor& visit) {
  ScanStep step;
  std::vector<SeenPlace> places;
  places.reserve(std::min<size_t>(most, kWalkStep));
  const std::shared_ptr<RecordWalk> walk = take_walk(from);
  MetaWalk& blocks = walk->blocks;
  BlockRecord record;
  for (; blocks.valid() && step.found < most; blocks.next()) {
    const Result<bool> readable = read_row(blocks.key(), blocks.value(), record);
    if (!readable.ok()) {
      ++step.unreadable;
      continue;
    }
    if (!*readable) {
      ++step.forgotten;
      note_forgotten(blocks.key());
      continue;
    }
    ++step.found;
    places.emplace_back(record.hash, place_of(record));
    visit(record, walk->touch());
  }
  step.unreadable += blocks.gaps() - std::exchange(walk->told_gaps, blocks.gaps());
  step.done = !blocks.valid();
  step.cursor = std::string(blocks.key());
  EMBER_ASSIGN(const bool all_of_few, see(step, from, places, *walk));
  if (all_of_few) let_compact();
  if (!step.done) {
    walk->left_us = system_clock().now_us();
    MutexLock lock(walk_mutex_);
    walks_[from.share] = walk;
  }
  return step;
}

// Notes where the found records lie, unless something newer is known of them. True when all records
// have been seen, and they are few.
Result<bool> DiskTierImpl::see(const ScanStep& step, const ScanFrom& from,
                         std::span<const SeenPlace> places, const RecordWalk& walk) {
  MutexLock lock(state_mutex_);
  const rocksdb::Status& damage = walk.blocks.damage();
  if (!damage.ok()) {
    records_hidden_ = true;
    damage_note_ = "some block records are unreadable: " + damage.ToString();
  }
  if (!all_seen_) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (i + kPlacesAhead < places.size()) places_.prefetch(places[i + kPlacesAhead].first);
      const auto& [hash, place] = places[i];
      if (place.epoch == 0 || place.epoch > kMaxEpoch) continue;
      if (places_.count(hash) == 0 && erased_.count(hash) == 0) add_place(hash, place);
    }
    SeenShare& seen = seen_[from.share];
    if (from.cursor <= seen.up_to) {
      seen.up_to = std::max(seen.up_to, step.cursor);
      seen.all = seen.all || step.done;
    }
    all_seen_ = std::all_of(seen_.begin(), seen_.end(), [](const auto& one) { return one.all; });
    if (all_seen_) {
      erased_.clear();
      for (auto& [number, epoch] : epochs_) epoch.bytes = std::max(epoch.bytes, epoch.live_bytes);
    }
  }
  if (!step.done || !all_seen_ || !places_.empty() || !records_hidden_) {
    return all_seen_ && places_.size() <= kFewRecords;
  }
  return Error{ErrorCode::kCorruption,
               doing("none of its block records can be read: " + damage_note_)};
}

Result<DiskTier::Listing> DiskTierImpl::list() {
  Listing listing;
  const auto keep = [&listing](const BlockRecord& record, const TouchRecord& touch) {
    listing.records.emplace_back(record, touch);
  };
  for (ScanFrom from; from.share < kScanShares; from = {from.share + 1, {}}) {
    for (bool done = false; !done;) {
      EMBER_ASSIGN(ScanStep step, scan(from, kWalkStep, keep));
      listing.unreadable += step.unreadable;
      listing.forgotten += step.forgotten;
      from.cursor = std::move(step.cursor);
      done = step.done;
    }
  }
  return listing;
}

}  // namespace ember
