// Disk tier: making what lies beside the records agree with them, and giving up a block's groups.
#include <rocksdb/iterator.h>

#include <utility>

#include "store/disk/disk_tier_impl.h"
#include "store/disk/rocksdb_status.h"

namespace ember {

// Rows that are wrong, by key; and the epochs' rows as they should be.
struct DiskTierImpl::RowFaults {
  std::vector<std::string> blocks;
  std::vector<std::string> touches;
  std::vector<std::pair<uint32_t, EpochRow>> epochs;
};

// Keys of one kind lie together; those of blocks and of touches in the same order of hashes.
Status DiskTierImpl::find_faults(RowFaults& faults) {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  const auto kind_of = [](const rocksdb::Iterator& it) {
    return static_cast<MetaKind>(it.key()[0]);
  };
  std::unique_ptr<rocksdb::Iterator> block(db_->NewIterator(options, meta_));
  std::unique_ptr<rocksdb::Iterator> touch(db_->NewIterator(options, meta_));
  // Those before this block belong to nothing, and its own is only as good as the block's record.
  const auto touches_up_to = [&](std::optional<std::string_view> hash, bool readable) {
    for (; touch->Valid() && kind_of(*touch) == MetaKind::kTouch; touch->Next()) {
      const std::string_view key = touch->key().ToStringView();
      const int order = hash ? key.substr(1).compare(*hash) : -1;
      if (order > 0) return;
      const bool good =
          order == 0 && readable && decode_touch(key, touch->value().ToStringView()).has_value();
      if (!good) faults.touches.emplace_back(key);
    }
  };
  touch->Seek(std::string(1, static_cast<char>(MetaKind::kTouch)));
  for (block->Seek(std::string(1, static_cast<char>(MetaKind::kBlock)));
       block->Valid() && kind_of(*block) == MetaKind::kBlock; block->Next()) {
    const std::string_view key = block->key().ToStringView();
    const bool good = record_of(key, block->value().ToStringView()).ok();
    if (!good) faults.blocks.emplace_back(key);
    touches_up_to(key.substr(1), good);
  }
  touches_up_to(std::nullopt, false);
  std::map<uint32_t, EpochRow> rows;
  std::unique_ptr<rocksdb::Iterator> row(db_->NewIterator(options, meta_));
  for (row->Seek(std::string(1, static_cast<char>(MetaKind::kEpoch)));
       row->Valid() && kind_of(*row) == MetaKind::kEpoch; row->Next()) {
    const std::string_view key = row->key().ToStringView();
    const std::optional<uint32_t> epoch = epoch_of_key(key);
    const std::optional<EpochRow> read = decode_epoch(key, row->value().ToStringView());
    if (epoch && read) rows[*epoch] = *read;
  }
  for (const auto& it : {block.get(), touch.get(), row.get()}) {
    EMBER_TRY(rocksdb_result(it->status(), doing("walk of its metadata")));
  }
  MutexLock lock(state_mutex_);
  for (const auto& [number, epoch] : epochs_) {
    const auto found = rows.find(number);
    if (found != rows.end() && found->second.bytes >= epoch.live_bytes) continue;
    faults.epochs.emplace_back(
        number, EpochRow{std::max(epoch.bytes, epoch.live_bytes), epoch.live, epoch.files,
                         epoch.rewritten});
  }
  return {};
}

Result<DiskTier::Reindexed> DiskTierImpl::reindex(bool dry_run) {
  if (!dry_run) EMBER_TRY(check_writable());
  EMBER_TRY(see_all_places());
  if (!dry_run && dirty_) EMBER_TRY(flush_now());
  RowFaults faults;
  EMBER_TRY(find_faults(faults));
  const Reindexed done{faults.epochs.size(), faults.blocks.size(), faults.touches.size()};
  if (dry_run || done.epochs + done.unreadable + done.touches == 0) return done;
  rocksdb::WriteBatch batch;
  for (const std::string& key : faults.blocks) {
    const std::optional<BlockHash> hash = hash_of_key(key);
    if (hash && options_.set_aside) {
      Result<std::optional<FoundRecord>> found = read_as_found(*hash);
      if (found.ok() && found->has_value()) {
        options_.set_aside({*hash, 0, false, "its record cannot be read (found by a repair)",
                            std::move(**found)});
      }
    }
    batch.Delete(meta_, key);
  }
  for (const std::string& key : faults.touches) batch.Delete(meta_, key);
  for (const auto& [number, row] : faults.epochs) {
    const std::string key = epoch_key(number);
    batch.Put(meta_, key, encode_epoch(key, row));
  }
  EMBER_TRY(write(batch, true));
  EMBER_TRY(flush());
  MutexLock lock(state_mutex_);
  for (const auto& [number, row] : faults.epochs) epochs_[number].bytes = row.bytes;
  damage_note_.clear();
  return done;
}

std::vector<DiskTier::EpochUse> DiskTierImpl::epochs() const {
  std::vector<EpochUse> uses;
  MutexLock lock(state_mutex_);
  if (!all_seen_) return uses;
  for (const auto& [number, epoch] : epochs_) {
    uses.push_back({number, epoch.bytes, epoch.live_bytes, epoch.live});
  }
  return uses;
}

Status DiskTierImpl::make_hole(const BlockHash& hash) {
  EMBER_TRY(check_writable());
  EMBER_ASSIGN(std::optional<BlockRecord> record, read_record(hash));
  if (!record) {
    return {ErrorCode::kInvalidArgument, doing("there is no block " + hash.hex())};
  }
  record->epoch = 0;
  EMBER_ASSIGN(const std::string row, row_of(*record));
  rocksdb::WriteBatch batch;
  batch.Put(meta_, block_key(hash), row);
  EMBER_TRY(write(batch, true));
  MutexLock lock(state_mutex_);
  forget_block(hash);
  unflushed_bytes_ += row.size();
  return {};
}

}  // namespace ember
