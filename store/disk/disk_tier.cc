// Disk tier: opening, reading and proving.
#include "store/disk_tier.h"

#include <rocksdb/rate_limiter.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "store/codec.h"
#include "store/disk/disk_tier_impl.h"
#include "store/disk/fast_crc32c.h"
#include "store/disk/open_parts.h"
#include "store/disk/rocksdb_status.h"
#include "store/disk/torn_logs.h"

namespace ember {
namespace {

constexpr const char* kDataFamily = "data";
constexpr int64_t kRefillUs = 10'000;  // of the rate limiter: short pauses rather than long ones

// RocksDB's own checksums are verified too: without them a damaged table block reaches RocksDB's
// decoders unchecked, and what these do with it is not in our hands. The cost: fast_crc32c.h.
rocksdb::ReadOptions read_options() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

bool unusable_now(ErrorCode code) { return code == ErrorCode::kCapacity || code == ErrorCode::kIo; }

}  // namespace

Result<std::unique_ptr<DiskTier>> DiskTier::open(const DiskTierOptions& options) {
  return open_disk_tier(options, nullptr);
}

Result<std::unique_ptr<DiskTier>> open_disk_tier(const DiskTierOptions& options,
                                                 const BaseFileSystem& base) {
  return DiskTierImpl::open(options, base);
}

DiskTierImpl::DiskTierImpl(const DiskTierOptions& options,
                           std::shared_ptr<rocksdb::FileSystem> base)
    : options_(options),
      sizes_(plan_epochs(options.limit_bytes - std::min(options.ballast_bytes,
                                                        options.limit_bytes))),
      seam_(make_seam({options.directory, options.limit_bytes, options.read_only}, base)),
      ballast_(options.directory, options.read_only ? 0 : options.ballast_bytes,
               seam_.files->ledger()) {
  file_options_.root = options.directory;
  file_options_.limit_bytes = options.limit_bytes;
  file_options_.read_only = options.read_only;
  find_file_system();
}

Result<std::unique_ptr<DiskTier>> DiskTierImpl::open(const DiskTierOptions& options,
                                                     std::shared_ptr<rocksdb::FileSystem> base) {
  if (!options.read_only) EMBER_TRY(make_private_directory(base, options.directory));
  std::unique_ptr<DiskTierImpl> tier(new DiskTierImpl(options, std::move(base)));
  tier->ballast_.shorten();
  tier->lower_ledger_limit();
  // Damage is left to RocksDB, which says more.
  if (!options.read_only) {
    static_cast<void>(mend_torn_logs(tier->seam_.files, options.directory, true));
  }
  // Opening writes a little, and so do others of this store.
  const bool full = tier->free_bytes() < tier->sizes_.margin_bytes;
  if (full && !options.read_only) static_cast<void>(tier->release_ballast());
  if (options.read_only) {
    EMBER_TRY(tier->open_database(true));
  } else {
    EMBER_TRY(tier->open_for_writing_or_reading());
  }
  EMBER_TRY(tier->load_state(!options.scan_later));
  tier->keep_ballast();
  return std::unique_ptr<DiskTier>(std::move(tier));
}

DiskTierImpl::~DiskTierImpl() { close_database(); }

std::string DiskTierImpl::doing(std::string_view what) const {
  return options_.directory + ": " + std::string(what);
}

void DiskTierImpl::close_database() {
  if (db_ == nullptr) return;
  {
    MutexLock lock(walk_mutex_);
    walks_ = {};
  }
  // RocksDB's own flush at closing may wait for ever, for one that it did not schedule.
  if (dirty_) static_cast<void>(flush_families(*db_, {meta_, data_}, *seam_.health));
  db_->DestroyColumnFamilyHandle(meta_);
  db_->DestroyColumnFamilyHandle(data_);
  meta_ = data_ = nullptr;
  db_->Close();
  db_.reset();
}

Status DiskTierImpl::open_database(bool read_only) {
  LimitedFileSystemOptions files = file_options_;
  files.read_only = read_only;
  if (!read_only) remove_unfinished_files(*seam_.files, options_.directory);
  rocksdb::DBOptions options = common_options(seam_, files);
  options.atomic_flush = true;
  options.avoid_flush_during_shutdown = true;  // close_database does it
  if (options_.write_bytes_per_s > 0) {
    options.rate_limiter.reset(rocksdb::NewGenericRateLimiter(
        static_cast<int64_t>(options_.write_bytes_per_s), kRefillUs));
  }
  options.writable_file_max_buffer_size =
      std::clamp<uint64_t>(options_.memtable_bytes / 16, 64u << 10, 4u << 20);
  DiskFamilies families = disk_families(options_);
  if (!read_only) hold_compaction(families);
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  descriptors.emplace_back(rocksdb::kDefaultColumnFamilyName, families.meta);
  descriptors.emplace_back(kDataFamily, families.data);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  rocksdb::Status status =
      read_only ? rocksdb::DB::OpenForReadOnly(options, options_.directory, descriptors, &handles,
                                               &db)
                : rocksdb::DB::Open(options, options_.directory, descriptors, &handles, &db);
  if (!status.ok()) return rocksdb_error(status, doing("RocksDB cannot open it"));
  db_.reset(db);
  meta_ = handles[0];
  data_ = handles[1];
  read_only_ = read_only;
  seam_.health->clear();
  return {};
}

// A full or read-only disk still answers reads.
Status DiskTierImpl::open_for_writing_or_reading() {
  Status writing = open_database(false);
  const bool full = !writing.ok() && writing.error().code == ErrorCode::kCapacity;
  if (full && release_ballast()) writing = open_database(false);
  if (writing.ok() || !unusable_now(writing.error().code)) return writing;
  if (!open_database(true).ok()) return writing;
  read_only_reason_ = writing.error().message;
  waits_for_space_ = writing.error().code == ErrorCode::kCapacity;
  return {};
}

Result<std::optional<BlockRecord>> DiskTierImpl::read_record(const BlockHash& hash) {
  std::shared_lock hold(db_mutex_);
  if (db_ == nullptr) return Error{ErrorCode::kIo, doing("closed: " + seam_.health->text())};
  std::string value;
  rocksdb::Status status = db_->Get(read_options(), meta_, block_key(hash), &value);
  if (status.IsNotFound()) return std::optional<BlockRecord>();
  if (!status.ok()) return rocksdb_error(status, doing("record of block " + hash.hex()));
  return record_of(block_key(hash), value);
}

Status DiskTierImpl::read_payload(const BlockRecord& record, uint32_t group,
                                  rocksdb::PinnableSlice& payload) {
  if (db_ == nullptr) return {ErrorCode::kIo, doing("closed: " + seam_.health->text())};
  std::string key = data_key(record.epoch, record.hash, group);
  rocksdb::Status status = db_->Get(read_options(), data_, key, &payload);
  if (!status.ok()) {
    // A file that is gone does not come back: unlike other errors of the drive, this is damage.
    if (status.IsPathNotFound()) status = rocksdb::Status::Corruption(status.ToString());
    return rocksdb_error(status, doing("group " + std::to_string(group) + " of block " +
                                       record.hash.hex()));
  }
  return {};
}

Status DiskTierImpl::prove_payload(const BlockRecord& record, uint32_t group,
                                   std::string_view stored, Bytes raw) const {
  std::string opened;
  EMBER_ASSIGN(const std::string_view payload, payload_of(record, group, stored, opened));
  const GroupEntry& entry = record.groups[group];
  EMBER_TRY(decode_group(entry.codec, payload, raw));
  if (checksum64(raw) != entry.checksum) {
    return {ErrorCode::kCorruption, doing("group " + std::to_string(group) + " of block " +
                                          record.hash.hex() + ": the checksum does not agree")};
  }
  return {};
}

Status DiskTierImpl::prove_group(const BlockRecord& record, uint32_t group, Bytes raw) {
  std::shared_lock hold(db_mutex_);
  rocksdb::PinnableSlice payload;
  EMBER_TRY(read_payload(record, group, payload));
  return prove_payload(record, group, payload.ToStringView(), raw);
}

Status DiskTierImpl::read_group(const BlockRecord& record, uint32_t group, Bytes raw) {
  EMBER_CHECK(group < record.groups.size(), "no such group in the record");
  EMBER_CHECK(raw.size() == record.groups[group].raw_bytes, "room for exactly one group's bytes");
  Status status = prove_group(record, group, raw);
  uint32_t tried = record.epoch;
  while (!status.ok()) {
    // Its epoch may have been retired since the caller got the record, and the one it was moved to
    // since then: look again for as long as it moves.
    Result<std::optional<BlockRecord>> now = read_record(record.hash);
    if (!now.ok() || !now->has_value()) return status;
    const BlockRecord& moved = **now;
    bool same = moved.epoch != tried && group < moved.groups.size() &&
                moved.groups[group] == record.groups[group];
    if (!same) return status;
    tried = moved.epoch;
    status = prove_group(moved, group, raw);
  }
  return status;
}

DiskTierStats DiskTierImpl::stats() const {
  DiskTierStats stats;
  FileLedger& ledger = seam_.files->ledger();
  {
    MutexLock lock(state_mutex_);
    stats = counters_;
  }
  stats.fast_checksums = crc32c_is_ours();
  stats.free_bytes = free_bytes();
  stats.free_floor_bytes = free_floor_bytes_;
  stats.ballast_bytes = ballast_.held_bytes();
  stats.file_bytes = ledger.file_bytes();
  stats.limit_bytes = options_.limit_bytes;
  const FileLedger::Written written = ledger.written();
  stats.written_bytes = written.bytes();
  stats.written_blob_bytes = written.blob_bytes;
  stats.written_table_bytes = written.table_bytes;
  std::string trouble = seam_.health->text();
  {
    std::shared_lock hold(db_mutex_);
    stats.reading_only = read_only_;
    stats.waits_for_space = read_only_ && waits_for_space_;
    if (trouble.empty() && !read_only_reason_.empty()) {
      trouble = "reading only: " + read_only_reason_;
    }
  }
  MutexLock lock(state_mutex_);
  if (trouble.empty()) trouble = damage_note_;
  stats.health = trouble.empty() ? "ok" : trouble;
  stats.stored_bytes = stored_bytes_;
  stats.raw_bytes = raw_bytes_;
  stats.blocks = places_.size();
  stats.epochs = epochs_.size();
  return stats;
}

Result<std::vector<std::string>> DiskTierImpl::verify_files() {
  std::shared_lock hold(db_mutex_);
  if (db_ == nullptr) return Error{ErrorCode::kIo, doing("closed: " + seam_.health->text())};
  rocksdb::Options options(common_options(seam_, file_options_), disk_families(options_).meta);
  return unreadable_files(*db_, options_.directory, options);
}

}  // namespace ember
