// Conversations' database: opening, recovery, room and compaction.
//
// Recovery: kTolerateCorruptedTailRecords, so that the half record which a kill leaves at the log's
// end is dropped and any other fault fails the opening. (The default mode stops at the first fault
// and drops all that follows, in silence.) Since RocksDB takes a changed length near the end for
// such a half record, and a torn write for damage, torn_logs looks at the logs and the manifest
// before it sees them.
#include "store/disk/conversations_database.h"

#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "store/disk/rocksdb_status.h"
#include "store/disk/torn_logs.h"

namespace ember {
namespace {

constexpr uint64_t kMarginBytes = 128u << 10;  // manifests and option files
constexpr const char* kTailsFamily = "tails";
constexpr uint64_t kReserveBytes = 64u << 10;  // kept for deletions, which must always work

rocksdb::ColumnFamilyOptions family_options(uint64_t memtable_bytes) {
  rocksdb::ColumnFamilyOptions options;
  options.compression = rocksdb::kNoCompression;
  options.bottommost_compression = rocksdb::kDisableCompressionOption;
  options.write_buffer_size = std::max<uint64_t>(memtable_bytes, 64u << 10);
  options.max_write_buffer_number = 2;
  options.max_bytes_for_level_base = 8u << 20;
  options.target_file_size_base = 2u << 20;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(512u << 10, 1);
  table.cache_index_and_filter_blocks = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace

ConversationsDatabase::ConversationsDatabase(const ConversationsOptions& options,
                                             const BaseFileSystem& base)
    : options_(options) {
  files_.root = options.directory;
  files_.limit_bytes = options.limit_bytes;
  files_.read_only = options.read_only;
  seam_ = make_seam(files_, base);
}

rocksdb::DBOptions ConversationsDatabase::database_options(bool read_only) const {
  LimitedFileSystemOptions files = files_;
  files.read_only = read_only;
  rocksdb::DBOptions options = common_options(seam_, files);
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.max_total_wal_size = 2 * std::max<uint64_t>(options_.memtable_bytes, 256u << 10);
  options.writable_file_max_buffer_size = 256u << 10;
  options.avoid_flush_during_shutdown = true;  // the log has it all
  return options;
}

Status ConversationsDatabase::open_database(bool read_only) {
  if (!read_only) remove_unfinished_files(*seam_.files, options_.directory);
  rocksdb::DBOptions options = database_options(read_only);
  uint64_t share = options_.memtable_bytes / 4;
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  descriptors.emplace_back(rocksdb::kDefaultColumnFamilyName, family_options(0));
  descriptors.emplace_back("turns", family_options(share));
  descriptors.emplace_back(kTailsFamily, family_options(share));
  rocksdb::DB* db = nullptr;
  rocksdb::Status status =
      read_only
          ? rocksdb::DB::OpenForReadOnly(options, options_.directory, descriptors, &handles_, &db)
          : rocksdb::DB::Open(options, options_.directory, descriptors, &handles_, &db);
  if (!status.ok()) return rocksdb_error(status, doing("RocksDB cannot open it"));
  db_.reset(db);
  seam_.health->clear();
  return {};
}

Status ConversationsDatabase::open() {
  EMBER_TRY(mend_torn_logs(seam_.files, options_.directory, !options_.read_only));
  FileLedger& ledger = seam_.files->ledger();
  // A limit that was lowered below what is there must not keep people from what they said.
  uint64_t to_open = ledger.file_bytes() + ledger.rewritable_bytes() + kMarginBytes;
  ledger.set_limit_bytes(std::max(options_.limit_bytes, to_open));
  return options_.read_only ? open_database(true) : open_for_writing_or_reading();
}

// A full or read-only disk still answers reads.
Status ConversationsDatabase::open_for_writing_or_reading() {
  Status writing = open_database(false);
  reading_only_ = false;
  if (writing.ok()) return writing;
  ErrorCode code = writing.error().code;
  bool readable = code == ErrorCode::kCapacity || code == ErrorCode::kIo;
  if (!readable || !open_database(true).ok()) return writing;
  read_only_reason_ = writing.error().message;
  reading_only_ = true;
  return {};
}

void ConversationsDatabase::close() {
  if (db_ == nullptr) return;
  for (rocksdb::ColumnFamilyHandle* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  handles_.clear();
  db_->Close();
  db_.reset();
}

Result<ConversationsDatabase::Use> ConversationsDatabase::use() {
  Use use;
  use.hold = std::shared_lock(mutex_);
  if (db_ == nullptr) return Error{ErrorCode::kIo, doing("closed: " + seam_.health->text())};
  use.db = db_.get();
  use.turns = handles_[1];
  use.tails = handles_[2];
  return use;
}

Status ConversationsDatabase::check_writable() {
  if (options_.read_only) return {ErrorCode::kUnsupported, doing("opened for reading only")};
  if (!reading_only_ && seam_.health->text().empty()) return {};
  return reopen();
}

// For the same reason as the disk tier, not by RocksDB's Resume. Nothing is lost: what a failed
// write left in the log is read again like all else, or dropped as its torn end.
Status ConversationsDatabase::reopen() {
  std::unique_lock hold(mutex_);
  const std::string trouble = reading_only_ ? read_only_reason_ : seam_.health->text();
  if (!reading_only_ && trouble.empty()) return {};  // another thread was here
  if (!recovery_.begin(system_clock().now_us())) {
    return {ErrorCode::kBusy, doing("not writable: " + trouble)};
  }
  close();
  seam_.files->ledger().scan(options_.directory);
  Status opened = open();
  if (!opened.ok()) {
    seam_.health->report(rocksdb::Status::IOError(opened.error().message));
    return opened;
  }
  if (reading_only_) return {ErrorCode::kIo, doing("reading only: " + read_only_reason_)};
  recovery_.succeeded();
  return {};
}

// Flushing and compacting write tables and logs a second time.
bool ConversationsDatabase::fits(uint64_t more_bytes) const {
  FileLedger& ledger = seam_.files->ledger();
  return ledger.file_bytes() + ledger.rewritable_bytes() + 2 * more_bytes + kMarginBytes <=
         options_.limit_bytes;
}

Status ConversationsDatabase::compact(const Use& use) {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  for (rocksdb::ColumnFamilyHandle* handle : {use.turns, use.tails}) {
    rocksdb::Status status = use.db->CompactRange(options, handle, nullptr, nullptr);
    if (!status.ok()) return rocksdb_error(status, doing("compaction"));
  }
  rocksdb::Status status = use.db->DisableFileDeletions();
  if (status.ok()) status = use.db->EnableFileDeletions(true);
  return rocksdb_result(status, doing("deletion of old files"));
}

Status ConversationsDatabase::purge() {
  EMBER_TRY(check_writable());
  EMBER_ASSIGN(const Use now, use());
  // Tables first: a log goes when all that it holds is in tables.
  rocksdb::Status status = flush_families(*now.db, {now.turns, now.tails}, *seam_.health);
  if (!status.ok()) return rocksdb_error(status, doing("flush"));
  return compact(now);
}

Status ConversationsDatabase::make_room(uint64_t more_bytes) {
  EMBER_TRY(check_writable());
  more_bytes += kReserveBytes;
  if (fits(more_bytes)) return {};
  if (compactable_.exchange(false)) {
    EMBER_ASSIGN(const Use now, use());
    EMBER_TRY(compact(now));
    if (fits(more_bytes)) return {};
  }
  return {ErrorCode::kCapacity, doing("no room for " + std::to_string(more_bytes) +
                                      " bytes within " + std::to_string(options_.limit_bytes))};
}

Status ConversationsDatabase::write(bool sync, const Fill& fill) {
  EMBER_TRY(check_writable());
  EMBER_ASSIGN(const Use now, use());
  rocksdb::WriteBatch batch;
  EMBER_TRY(fill(batch, now));
  compactable_ = true;
  rocksdb::WriteOptions options;
  options.sync = sync;
  rocksdb::Status status = now.db->Write(options, &batch);
  if (!status.ok()) seam_.health->report(status);
  return rocksdb_result(status, doing("write"));
}

Status ConversationsDatabase::renew_tails() {
  EMBER_TRY(check_writable());
  std::unique_lock hold(mutex_);
  if (db_ == nullptr) return {ErrorCode::kIo, doing("closed: " + seam_.health->text())};
  rocksdb::Status status = db_->DropColumnFamily(handles_.back());
  if (!status.ok()) return rocksdb_error(status, doing("dropping of damaged tails"));
  // The old handle stays for readers where no new family can be made.
  rocksdb::ColumnFamilyHandle* renewed = nullptr;
  status =
      db_->CreateColumnFamily(family_options(options_.memtable_bytes / 4), kTailsFamily, &renewed);
  if (!status.ok()) return rocksdb_error(status, doing("making of new tails"));
  db_->DestroyColumnFamilyHandle(std::exchange(handles_.back(), renewed));
  return {};
}

Result<std::vector<std::string>> ConversationsDatabase::unreadable() {
  EMBER_ASSIGN(const Use now, use());
  rocksdb::Options options(database_options(true), family_options(0));
  return unreadable_files(*now.db, options_.directory, options);
}

}  // namespace ember
