// Disk tier: walking through its metadata, at opening and for listings.
#include <rocksdb/iterator.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "store/disk/disk_tier_impl.h"
#include "store/disk/rocksdb_status.h"

namespace ember {
namespace {

constexpr size_t kReadaheadBytes = 512u << 10;
constexpr size_t kWalkStep = 4096;  // records that see_all_places takes at once

rocksdb::ReadOptions walk_options() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  options.readahead_size = kReadaheadBytes;
  return options;
}

// The first four bytes after the kind, as a number.
uint32_t key_number(std::string_view key) {
  std::string padded(key.substr(1, 4));
  padded.resize(4, '\0');
  return __builtin_bswap32(load_unaligned<uint32_t>(padded.data()));
}

bool can_seek(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* meta, const std::string& key) {
  std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(walk_options(), meta));
  it->Seek(key);
  return it->status().ok();
}

std::string first_key(MetaKind kind) { return std::string(1, static_cast<char>(kind)); }

}  // namespace

// The rows of one kind, in the order of their keys, from `from` on. A damaged table block hides
// some keys: the walk goes on with the first one behind it.
class MetaWalk {
 public:
  MetaWalk(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* meta, std::string from)
      : db_(db), meta_(meta), last_(std::move(from)) {
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
    it_.reset(db_.NewIterator(walk_options(), meta_));
    it_->Seek(last_);
    settle();
  }
  void settle() {
    const char kind = last_[0];
    valid_ = it_->Valid() && it_->key()[0] == kind;
    if (valid_) {
      last_.assign(it_->key().data(), it_->key().size());
      return;
    }
    if (it_->status().ok()) return;
    damage_ = it_->status();
    ++gaps_;
    const std::optional<uint32_t> behind =
        readable_from(db_, meta_, static_cast<MetaKind>(kind), key_number(last_));
    if (!behind) return;
    last_ = number_key(static_cast<MetaKind>(kind), *behind);
    seek();
  }

  rocksdb::DB& db_;
  rocksdb::ColumnFamilyHandle* meta_;
  std::unique_ptr<rocksdb::Iterator> it_;
  std::string last_;
  bool valid_ = false;
  uint64_t gaps_ = 0;
  rocksdb::Status damage_;
};

// Block records and their touch records, which lie in the same order.
struct DiskTierImpl::RecordWalk {
  RecordWalk(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* meta, std::string from)
      : blocks(db, meta, from), touches(db, meta, touch_place(std::move(from))) {}

  // The place of the touch record of a block's key.
  static std::string touch_place(std::string key) {
    key[0] = static_cast<char>(MetaKind::kTouch);
    return key;
  }
  // That of the block where `blocks` stands. A lost one costs an age and a count, nothing else.
  TouchRecord touch() {
    const std::string_view hash = blocks.key().substr(1);
    while (touches.valid() && touches.key().substr(1) < hash) touches.next();
    if (!touches.valid() || touches.key().substr(1) != hash) return {};
    return decode_touch(touches.key(), touches.value()).value_or(TouchRecord{});
  }

  MetaWalk blocks;
  MetaWalk touches;
  uint64_t told_gaps = 0;  // of blocks.gaps(), counted by earlier steps
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
  {
    MutexLock lock(state_mutex_);
    places_.clear();
    epochs_.clear();
    erased_.clear();
    stored_bytes_ = raw_bytes_ = 0;
    all_seen_ = false;
    unseen_from_.clear();
    damage_note_.clear();
    MetaWalk walk(*db_, meta_, first_key(MetaKind::kEpoch));
    for (; walk.valid(); walk.next()) {
      const std::optional<uint32_t> epoch = epoch_of_key(walk.key());
      if (!epoch) continue;
      // A damaged row still names its epoch: all of it counts as dead.
      const EpochRow row = decode_epoch(walk.key(), walk.value()).value_or(EpochRow{});
      Epoch& state = epochs_[*epoch];
      state.bytes = row.bytes;
      state.files = row.files;
      state.rewritten = row.rewritten;
    }
    gaps = walk.gaps();
    if (gaps > 0) damage_note_ = "some epoch rows are unreadable: " + walk.damage().ToString();
  }
  // Each record's epoch has a row; only where rows are lost do the records have to tell the newest.
  if (all || gaps > 0) EMBER_TRY(see_all_places());
  MutexLock lock(state_mutex_);
  newest_epoch_ = epochs_.empty() ? 0 : epochs_.rbegin()->first;
  const auto last = epochs_.find(newest_epoch_);
  const bool goes_on = last != epochs_.end() && !last->second.rewritten &&
                       last->second.bytes < sizes_.epoch_bytes;
  open_epochs_ = {goes_on ? newest_epoch_ : 0, 0};
  return {};
}

Status DiskTierImpl::see_all_places() {
  while (true) {
    std::string cursor;
    {
      MutexLock lock(state_mutex_);
      if (all_seen_) return {};
      cursor = unseen_from_;
    }
    EMBER_TRY(scan_now(cursor, kWalkStep));
  }
}

Result<DiskTier::ScanStep> DiskTierImpl::scan(const std::string& cursor, size_t most) {
  std::shared_lock hold(db_mutex_);
  if (db_ == nullptr) return Error{ErrorCode::kIo, doing("closed: " + seam_.health->text())};
  return scan_now(cursor, most);
}

// The walk of the step before, where this one goes on from it: a new one costs reads of its own in
// every table.
std::shared_ptr<DiskTierImpl::RecordWalk> DiskTierImpl::take_walk(const std::string& cursor) {
  {
    MutexLock lock(walk_mutex_);
    if (walk_ != nullptr && walk_->blocks.key() == cursor) return std::exchange(walk_, nullptr);
  }
  return std::make_shared<RecordWalk>(*db_, meta_,
                                      cursor.empty() ? first_key(MetaKind::kBlock) : cursor);
}

Result<DiskTier::ScanStep> DiskTierImpl::scan_now(const std::string& cursor, size_t most) {
  ScanStep step;
  step.found.records.reserve(std::min<size_t>(most, kWalkStep));
  const std::shared_ptr<RecordWalk> walk = take_walk(cursor);
  MetaWalk& blocks = walk->blocks;
  for (; blocks.valid() && step.found.records.size() < most; blocks.next()) {
    Result<std::optional<BlockRecord>> record = record_of(blocks.key(), blocks.value());
    if (!record.ok()) {
      ++step.found.unreadable;
      continue;
    }
    if (!*record) {
      ++step.found.forgotten;
      note_forgotten(blocks.key());
      continue;
    }
    step.found.records.emplace_back(std::move(**record), walk->touch());
  }
  step.found.unreadable += blocks.gaps() - std::exchange(walk->told_gaps, blocks.gaps());
  step.done = !blocks.valid();
  step.cursor = std::string(blocks.key());
  see(step, cursor);
  if (blocks.gaps() > 0) {
    MutexLock lock(state_mutex_);
    if (step.done && places_.empty()) {
      return rocksdb_error(blocks.damage(), doing("none of its block records can be read"));
    }
    damage_note_ = "some block records are unreadable: " + blocks.damage().ToString();
  }
  if (!step.done) {
    MutexLock lock(walk_mutex_);
    walk_ = walk;
  }
  return step;
}

// Notes where the found records lie, unless something newer is known of them.
void DiskTierImpl::see(const ScanStep& step, const std::string& cursor) {
  MutexLock lock(state_mutex_);
  if (all_seen_) return;
  for (const auto& [record, touch] : step.found.records) {
    if (record.epoch == 0 || record.epoch > kMaxEpoch) continue;
    if (places_.count(record.hash) > 0 || erased_.count(record.hash) > 0) continue;
    place_block(record.hash, place_of(record));
  }
  if (cursor > unseen_from_) return;
  if (step.cursor > unseen_from_) unseen_from_ = step.cursor;
  if (!step.done) return;
  all_seen_ = true;
  erased_.clear();
  unseen_from_.clear();
  for (auto& [number, epoch] : epochs_) epoch.bytes = std::max(epoch.bytes, epoch.live_bytes);
}

Result<DiskTier::Listing> DiskTierImpl::list() {
  Listing listing;
  ScanStep step;
  while (!step.done) {
    EMBER_ASSIGN(step, scan(step.cursor, kWalkStep));
    listing.unreadable += step.found.unreadable;
    listing.forgotten += step.found.forgotten;
    std::move(step.found.records.begin(), step.found.records.end(),
              std::back_inserter(listing.records));
  }
  return listing;
}

}  // namespace ember
