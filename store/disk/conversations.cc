// Conversations: the database of what people said, synced turn by turn.
//
// Recovery: kTolerateCorruptedTailRecords, so that the half record which a kill leaves at the log's
// end is dropped and any other fault fails the opening. (The default mode stops at the first fault
// and drops all that follows, in silence.) Since RocksDB takes a changed length near the end for
// such a half record, and a torn write for damage, torn_logs looks at the logs and the manifest
// before it sees them.
#include "store/conversations.h"

#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/iterator.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "store/codec.h"
#include "store/disk/checkpoint.h"
#include "store/disk/conversations_format.h"
#include "store/disk/open_parts.h"
#include "store/disk/rocksdb_seam.h"
#include "store/disk/rocksdb_status.h"
#include "store/disk/torn_logs.h"
#include "store/disk/value_sealer.h"

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

class ConversationsImpl final : public Conversations {
 public:
  ConversationsImpl(const ConversationsOptions& options, const BaseFileSystem& base)
      : options_(options) {
    files_.root = options.directory;
    files_.limit_bytes = options.limit_bytes;
    files_.read_only = options.read_only;
    seam_ = make_seam(files_, base);
  }
  ~ConversationsImpl() override {
    if (db_ == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
    db_->Close();
  }

  Status open();
  Status put_head(const Conversation& conversation) override;
  Status put_turn(const std::string& id, uint32_t index, const Turn& turn) override;
  Result<Conversation> load(const std::string& id) override;
  Result<std::vector<Conversation>> list() override;
  uint64_t unreadable_heads() const override { return unreadable_heads_; }
  Status remove(const std::string& id) override;
  Status put_tail(const BlockRecord& record, std::span<const std::string> payloads,
                  bool sync) override;
  Status erase_tail(const BlockHash& hash) override;
  Result<TailListing> list_tails() override;
  Status read_tail_group(const BlockRecord& record, uint32_t group, Bytes raw) override;
  Result<std::optional<FoundRecord>> read_tail_as_found(const BlockHash& hash) override;
  Status checkpoint(const std::string& directory) override {
    return checkpoint_database(*db_, directory);
  }
  Status purge() override;
  uint64_t file_bytes() const override { return seam_.files->ledger().file_bytes(); }
  Result<std::vector<std::string>> verify_files() override;

 private:
  rocksdb::ColumnFamilyHandle* turns() const { return handles_[1]; }
  rocksdb::ColumnFamilyHandle* tails() const { return handles_[2]; }
  rocksdb::DBOptions database_options(bool read_only) const;
  Status open_database(bool read_only);
  bool fits(uint64_t more_bytes) const;
  Status check_writable();
  Status check_room(uint64_t more_bytes);
  Status write(rocksdb::WriteBatch& batch, bool sync);
  Status compact();
  Status renew_tails();
  Result<Conversation> load_head(const std::string& id) const;
  Result<std::string> scope_of(const std::string& id) const;
  // Opened and decoded; nothing where the key of the scope is destroyed.
  Result<std::optional<Conversation>> head_of(std::string_view key, std::string_view value) const;
  Result<Turn> turn_of(std::string_view key, std::string_view value) const;
  Result<std::optional<TailValue>> tail_of(std::string_view key, std::string_view value,
                                           std::string& opened) const;
  std::string doing(const std::string& what) const { return options_.directory + ": " + what; }

  ConversationsOptions options_;
  LimitedFileSystemOptions files_;
  Seam seam_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::string read_only_reason_;
  std::atomic<uint64_t> unreadable_heads_ = 0;
  std::atomic<bool> compactable_ = true;  // something was erased or written over
};

rocksdb::DBOptions ConversationsImpl::database_options(bool read_only) const {
  LimitedFileSystemOptions files = files_;
  files.read_only = read_only;
  rocksdb::DBOptions options = common_options(seam_, files);
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.max_total_wal_size = 2 * std::max<uint64_t>(options_.memtable_bytes, 256u << 10);
  options.writable_file_max_buffer_size = 256u << 10;
  return options;
}

Status ConversationsImpl::open_database(bool read_only) {
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

Status ConversationsImpl::open() {
  EMBER_TRY(mend_torn_logs(seam_.files, options_.directory, !options_.read_only));
  FileLedger& ledger = seam_.files->ledger();
  // A limit that was lowered below what is there must not keep people from what they said.
  uint64_t to_open = ledger.file_bytes() + ledger.rewritable_bytes() + kMarginBytes;
  ledger.set_limit_bytes(std::max(options_.limit_bytes, to_open));
  if (options_.read_only) return open_database(true);
  Status writing = open_database(false);
  if (writing.ok()) return writing;
  ErrorCode code = writing.error().code;
  bool readable = code == ErrorCode::kCapacity || code == ErrorCode::kIo;
  if (!readable || !open_database(true).ok()) return writing;
  read_only_reason_ = writing.error().message;
  return {};
}

// Flushing and compacting write tables and logs a second time.
bool ConversationsImpl::fits(uint64_t more_bytes) const {
  FileLedger& ledger = seam_.files->ledger();
  return ledger.file_bytes() + ledger.rewritable_bytes() + 2 * more_bytes + kMarginBytes <=
         options_.limit_bytes;
}

Status ConversationsImpl::check_writable() {
  if (options_.read_only) return {ErrorCode::kUnsupported, doing("opened for reading only")};
  if (!read_only_reason_.empty()) {
    return {ErrorCode::kIo, doing("reading only: " + read_only_reason_)};
  }
  if (seam_.health->text().empty()) return {};
  // After a full disk RocksDB writes again once it is asked to.
  EMBER_TRY(rocksdb_result(db_->Resume(), doing("not writable: " + seam_.health->text())));
  seam_.health->clear();
  return {};
}

Status ConversationsImpl::compact() {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  for (rocksdb::ColumnFamilyHandle* handle : {turns(), tails()}) {
    rocksdb::Status status = db_->CompactRange(options, handle, nullptr, nullptr);
    if (!status.ok()) return rocksdb_error(status, doing("compaction"));
  }
  rocksdb::Status status = db_->DisableFileDeletions();
  if (status.ok()) status = db_->EnableFileDeletions(true);
  return rocksdb_result(status, doing("deletion of old files"));
}

Status ConversationsImpl::purge() {
  EMBER_TRY(check_writable());
  // Tables first: a log goes when all that it holds is in tables.
  rocksdb::Status status = flush_families(*db_, {turns(), tails()}, *seam_.health);
  if (!status.ok()) return rocksdb_error(status, doing("flush"));
  return compact();
}

Status ConversationsImpl::check_room(uint64_t more_bytes) {
  EMBER_TRY(check_writable());
  more_bytes += kReserveBytes;
  if (fits(more_bytes)) return {};
  if (compactable_.exchange(false)) {
    EMBER_TRY(compact());
    if (fits(more_bytes)) return {};
  }
  return {ErrorCode::kCapacity, doing("no room for " + std::to_string(more_bytes) +
                                      " bytes within " + std::to_string(options_.limit_bytes))};
}

Status ConversationsImpl::write(rocksdb::WriteBatch& batch, bool sync) {
  EMBER_TRY(check_writable());
  rocksdb::WriteOptions options;
  options.sync = sync;
  rocksdb::Status status = db_->Write(options, &batch);
  if (!status.ok()) seam_.health->report(status);
  return rocksdb_result(status, doing("write"));
}

Status ConversationsImpl::put_head(const Conversation& conversation) {
  EMBER_CHECK(is_conversation_id(conversation.id), "a conversation's id is 16 hexadecimal digits");
  std::string key = head_key(conversation.id);
  EMBER_ASSIGN(const std::string value,
               stored_form(options_.sealer.get(), conversation.scope, {ValueKind::kTurn, key},
                           encode_head(key, conversation)));
  EMBER_TRY(check_room(value.size()));
  rocksdb::WriteBatch batch;
  batch.Put(turns(), key, value);
  compactable_ = true;
  return write(batch, true);
}

Status ConversationsImpl::put_turn(const std::string& id, uint32_t index, const Turn& turn) {
  EMBER_CHECK(is_conversation_id(id), "a conversation's id is 16 hexadecimal digits");
  std::string key = turn_key(id, index);
  EMBER_ASSIGN(const std::string scope, scope_of(id));
  EMBER_ASSIGN(const std::string value,
               stored_form(options_.sealer.get(), scope, {ValueKind::kTurn, key},
                           encode_turn(key, turn)));
  EMBER_TRY(check_room(value.size()));
  rocksdb::WriteBatch batch;
  batch.Put(turns(), key, value);
  compactable_ = true;
  return write(batch, true);
}

// Of an encrypted store: with which key its turns are sealed. In clear nothing depends on it.
Result<std::string> ConversationsImpl::scope_of(const std::string& id) const {
  if (options_.sealer == nullptr) return std::string();
  EMBER_ASSIGN(const Conversation head, load_head(id));
  return head.scope;
}

Result<Conversation> ConversationsImpl::load_head(const std::string& id) const {
  std::string key = head_key(id);
  std::string value;
  rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), turns(), key, &value);
  if (status.IsNotFound() || !is_conversation_id(id)) {
    return Error{ErrorCode::kInvalidArgument, "there is no conversation " + id};
  }
  if (!status.ok()) return rocksdb_error(status, doing("conversation " + id));
  EMBER_ASSIGN(std::optional<Conversation> head, head_of(key, value));
  if (head) return std::move(*head);
  return Error{ErrorCode::kInvalidArgument, "conversation " + id + " was forgotten"};
}

Result<std::optional<Conversation>> ConversationsImpl::head_of(std::string_view key,
                                                               std::string_view value) const {
  std::string opened;
  EMBER_ASSIGN(const std::optional<std::string_view> plain,
               plain_form(options_.sealer.get(), {ValueKind::kTurn, key}, value, opened));
  if (!plain) return std::optional<Conversation>();
  EMBER_ASSIGN(Conversation head, decode_head(key, *plain));
  return std::optional<Conversation>(std::move(head));
}

Result<Turn> ConversationsImpl::turn_of(std::string_view key, std::string_view value) const {
  std::string opened;
  EMBER_ASSIGN(const std::optional<std::string_view> plain,
               plain_form(options_.sealer.get(), {ValueKind::kTurn, key}, value, opened));
  if (plain) return decode_turn(key, *plain);
  return Error{ErrorCode::kInvalidArgument, "the turn was forgotten"};
}

Result<Conversation> ConversationsImpl::load(const std::string& id) {
  EMBER_ASSIGN(Conversation conversation, load_head(id));
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), turns()));
  std::string prefix = turn_prefix(id);
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    auto index = static_cast<uint32_t>(conversation.turns.size());
    if (it->key().ToStringView() != turn_key(id, index)) {
      return Error{ErrorCode::kCorruption,
                   doing("conversation " + id + ": turn " + std::to_string(index) + " is missing")};
    }
    EMBER_ASSIGN(Turn turn, turn_of(it->key().ToStringView(), it->value().ToStringView()));
    conversation.turns.push_back(std::move(turn));
  }
  EMBER_TRY(rocksdb_result(it->status(), doing("conversation " + id)));
  return conversation;
}

Result<std::vector<Conversation>> ConversationsImpl::list() {
  std::vector<Conversation> heads;
  uint64_t unreadable = 0;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), turns()));
  for (it->Seek("h"); it->Valid() && it->key()[0] == 'h'; it->Next()) {
    Result<std::optional<Conversation>> head =
        head_of(it->key().ToStringView(), it->value().ToStringView());
    if (!head.ok()) {
      ++unreadable;
    } else if (*head) {
      heads.push_back(std::move(**head));
    }
  }
  unreadable_heads_ = unreadable;
  EMBER_TRY(rocksdb_result(it->status(), doing("list of conversations")));
  std::sort(heads.begin(), heads.end(), [](const Conversation& a, const Conversation& b) {
    return std::pair(a.updated_unix_us, a.id) > std::pair(b.updated_unix_us, b.id);
  });
  return heads;
}

Status ConversationsImpl::remove(const std::string& id) {
  EMBER_CHECK(is_conversation_id(id), "a conversation's id is 16 hexadecimal digits");
  rocksdb::WriteBatch batch;
  batch.Delete(turns(), head_key(id));
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), turns()));
  std::string prefix = turn_prefix(id);
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    batch.Delete(turns(), it->key());
  }
  EMBER_TRY(rocksdb_result(it->status(), doing("conversation " + id)));
  compactable_ = true;
  return write(batch, true);
}

Status ConversationsImpl::put_tail(const BlockRecord& record, std::span<const std::string> payloads,
                                   bool sync) {
  EMBER_CHECK(payloads.size() == record.groups.size(), "one payload for each group");
  std::string key(record.hash.view());
  EMBER_ASSIGN(const std::string value,
               stored_form(options_.sealer.get(), record.scope, {ValueKind::kTail, key},
                           encode_tail(key, record, payloads)));
  EMBER_TRY(check_room(value.size()));
  rocksdb::WriteBatch batch;
  batch.Put(tails(), key, value);
  compactable_ = true;
  return write(batch, sync);
}

Status ConversationsImpl::erase_tail(const BlockHash& hash) {
  rocksdb::WriteBatch batch;
  batch.Delete(tails(), rocksdb::Slice(hash.view()));
  compactable_ = true;
  // Synced like all else: after a power cut at most one record of the log may be torn, and so can
  // be told from damage (rocksdb_log_check.h).
  return write(batch, true);
}

Result<Conversations::TailListing> ConversationsImpl::list_tails() {
  TailListing listing;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), tails()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    std::string opened;
    Result<std::optional<TailValue>> tail =
        tail_of(it->key().ToStringView(), it->value().ToStringView(), opened);
    if (!tail.ok()) {
      ++listing.unreadable;
    } else if (*tail) {
      listing.records.push_back(std::move((*tail)->record));
    }
  }
  if (it->status().ok()) return listing;
  ++listing.unreadable;
  it.reset();
  if (!check_writable().ok()) return listing;
  listing.records.clear();
  EMBER_TRY(renew_tails());
  return listing;
}

Result<std::optional<TailValue>> ConversationsImpl::tail_of(std::string_view key,
                                                            std::string_view value,
                                                            std::string& opened) const {
  EMBER_ASSIGN(const std::optional<std::string_view> plain,
               plain_form(options_.sealer.get(), {ValueKind::kTail, key}, value, opened));
  if (!plain) return std::optional<TailValue>();
  EMBER_ASSIGN(TailValue tail, decode_tail(key, *plain));
  return std::optional<TailValue>(std::move(tail));
}

// Tails are cache: each costs less than a block to compute again. A table of theirs that cannot be
// read would stop every compaction, and with it the writing of what people say.
Status ConversationsImpl::renew_tails() {
  rocksdb::Status status = db_->DropColumnFamily(tails());
  if (!status.ok()) return rocksdb_error(status, doing("dropping of damaged tails"));
  db_->DestroyColumnFamilyHandle(handles_.back());
  handles_.pop_back();
  rocksdb::ColumnFamilyHandle* renewed = nullptr;
  status =
      db_->CreateColumnFamily(family_options(options_.memtable_bytes / 4), kTailsFamily, &renewed);
  if (!status.ok()) return rocksdb_error(status, doing("making of new tails"));
  handles_.push_back(renewed);
  return {};
}

Status ConversationsImpl::read_tail_group(const BlockRecord& record, uint32_t group, Bytes raw) {
  EMBER_CHECK(group < record.groups.size(), "no such group in the record");
  EMBER_CHECK(raw.size() == record.groups[group].raw_bytes, "room for exactly one group's bytes");
  rocksdb::PinnableSlice value;
  std::string_view key = record.hash.view();
  rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), tails(), rocksdb::Slice(key), &value);
  std::string what = doing("tail of block " + record.hash.hex());
  if (!status.ok()) return rocksdb_error(status, what);
  std::string opened;
  EMBER_ASSIGN(const std::optional<TailValue> found, tail_of(key, value.ToStringView(), opened));
  if (!found) return {ErrorCode::kCancelled, what + " was forgotten with its scope"};
  const TailValue& tail = *found;
  if (group >= tail.payloads.size() || tail.record.groups[group] != record.groups[group]) {
    return {ErrorCode::kCorruption, what + ": it was replaced by another"};
  }
  const GroupEntry& entry = record.groups[group];
  EMBER_TRY(decode_group(entry.codec, tail.payloads[group], raw));
  if (checksum64(raw) != entry.checksum) {
    return {ErrorCode::kCorruption, what + ": the checksum of a group does not agree"};
  }
  return {};
}

Result<std::optional<FoundRecord>> ConversationsImpl::read_tail_as_found(const BlockHash& hash) {
  FoundRecord found;
  const rocksdb::Slice key(hash.view());
  const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), tails(), key, &found.record);
  if (status.IsNotFound()) return std::optional<FoundRecord>();
  if (!status.ok()) found.record.clear();  // its table cannot be read: that it was there is kept
  return std::optional<FoundRecord>(std::move(found));
}

Result<std::vector<std::string>> ConversationsImpl::verify_files() {
  rocksdb::Options options(database_options(true), family_options(0));
  std::vector<std::string> names = unreadable_files(*db_, options_.directory, options);
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), turns()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    std::string_view key = it->key().ToStringView();
    std::string_view value = it->value().ToStringView();
    std::string opened;
    Result<std::optional<std::string_view>> plain =
        plain_form(options_.sealer.get(), {ValueKind::kTurn, key}, value, opened);
    if (plain.ok() && !*plain) continue;  // forgotten
    bool good = plain.ok() && (key[0] == 'h' ? decode_head(key, **plain).ok()
                                             : decode_turn(key, **plain).ok());
    if (!good) names.push_back("conversation " + std::string(key.substr(1, 16)));
  }
  return names;
}

}  // namespace

Result<std::unique_ptr<Conversations>> Conversations::open(const ConversationsOptions& options) {
  return open_conversations(options, nullptr);
}

Result<std::unique_ptr<Conversations>> open_conversations(const ConversationsOptions& options,
                                                          const BaseFileSystem& base) {
  if (!options.read_only) EMBER_TRY(make_private_directory(base, options.directory));
  auto conversations = std::make_unique<ConversationsImpl>(options, base);
  EMBER_TRY(conversations->open());
  return std::unique_ptr<Conversations>(std::move(conversations));
}

}  // namespace ember
