// Conversations: what people said, turn by turn, and tail records, as rows of their database.
#include "store/conversations.h"

#include <rocksdb/iterator.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "store/codec.h"
#include "store/disk/checkpoint.h"
#include "store/disk/conversations_database.h"
#include "store/disk/conversations_format.h"
#include "store/disk/rocksdb_status.h"
#include "store/disk/value_sealer.h"

namespace ember {
namespace {

using Use = ConversationsDatabase::Use;

class ConversationsImpl final : public Conversations {
 public:
  ConversationsImpl(const ConversationsOptions& options, const BaseFileSystem& base)
      : sealer_(options.sealer), database_(options, base) {}

  Status open() { return database_.open(); }
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
  Status checkpoint(const std::string& directory) override;
  Status purge() override { return database_.purge(); }
  uint64_t file_bytes() const override { return database_.file_bytes(); }
  Result<std::vector<std::string>> verify_files() override;

 private:
  Status put_row(const std::string& key, const std::string& value);
  Result<Conversation> load_head(const Use& use, const std::string& id) const;
  Result<std::string> scope_of(const std::string& id);
  // Opened and decoded; nothing where the key of the scope is destroyed.
  Result<std::optional<Conversation>> head_of(std::string_view key, std::string_view value) const;
  Result<Turn> turn_of(std::string_view key, std::string_view value) const;
  Result<std::optional<TailValue>> tail_of(std::string_view key, std::string_view value,
                                           std::string& opened) const;
  // Every tail that can be read; damage in a table of theirs ends the walk.
  TailListing walk_tails(const Use& use, bool& whole) const;
  std::string doing(const std::string& what) const { return database_.doing(what); }

  std::shared_ptr<ValueSealer> sealer_;
  ConversationsDatabase database_;
  std::atomic<uint64_t> unreadable_heads_ = 0;
  std::atomic<bool> tails_listed_{false};
};

// Synced: a turn.
Status ConversationsImpl::put_row(const std::string& key, const std::string& value) {
  EMBER_TRY(database_.make_room(value.size()));
  return database_.write(true, [&](rocksdb::WriteBatch& batch, const Use& use) {
    batch.Put(use.turns, key, value);
    return Status();
  });
}

Status ConversationsImpl::put_head(const Conversation& conversation) {
  EMBER_CHECK(is_conversation_id(conversation.id), "a conversation's id is 16 hexadecimal digits");
  std::string key = head_key(conversation.id);
  EMBER_ASSIGN(const std::string value,
               stored_form(sealer_.get(), conversation.scope, {ValueKind::kTurn, key},
                           encode_head(key, conversation)));
  return put_row(key, value);
}

Status ConversationsImpl::put_turn(const std::string& id, uint32_t index, const Turn& turn) {
  EMBER_CHECK(is_conversation_id(id), "a conversation's id is 16 hexadecimal digits");
  std::string key = turn_key(id, index);
  EMBER_ASSIGN(const std::string scope, scope_of(id));
  EMBER_ASSIGN(const std::string value,
               stored_form(sealer_.get(), scope, {ValueKind::kTurn, key},
                           encode_turn(key, turn)));
  return put_row(key, value);
}

// Of an encrypted store: with which key its turns are sealed. In clear nothing depends on it.
Result<std::string> ConversationsImpl::scope_of(const std::string& id) {
  if (sealer_ == nullptr) return std::string();
  EMBER_ASSIGN(const Use use, database_.use());
  EMBER_ASSIGN(const Conversation head, load_head(use, id));
  return head.scope;
}

Result<Conversation> ConversationsImpl::load_head(const Use& use, const std::string& id) const {
  std::string key = head_key(id);
  std::string value;
  rocksdb::Status status = use.db->Get(rocksdb::ReadOptions(), use.turns, key, &value);
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
               plain_form(sealer_.get(), {ValueKind::kTurn, key}, value, opened));
  if (!plain) return std::optional<Conversation>();
  EMBER_ASSIGN(Conversation head, decode_head(key, *plain));
  return std::optional<Conversation>(std::move(head));
}

Result<Turn> ConversationsImpl::turn_of(std::string_view key, std::string_view value) const {
  std::string opened;
  EMBER_ASSIGN(const std::optional<std::string_view> plain,
               plain_form(sealer_.get(), {ValueKind::kTurn, key}, value, opened));
  if (plain) return decode_turn(key, *plain);
  return Error{ErrorCode::kInvalidArgument, "the turn was forgotten"};
}

Result<Conversation> ConversationsImpl::load(const std::string& id) {
  EMBER_ASSIGN(const Use use, database_.use());
  EMBER_ASSIGN(Conversation conversation, load_head(use, id));
  std::unique_ptr<rocksdb::Iterator> it(use.db->NewIterator(rocksdb::ReadOptions(), use.turns));
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
  EMBER_ASSIGN(const Use use, database_.use());
  std::unique_ptr<rocksdb::Iterator> it(use.db->NewIterator(rocksdb::ReadOptions(), use.turns));
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
  return database_.write(true, [&](rocksdb::WriteBatch& batch, const Use& use) {
    batch.Delete(use.turns, head_key(id));
    std::unique_ptr<rocksdb::Iterator> it(use.db->NewIterator(rocksdb::ReadOptions(), use.turns));
    const std::string prefix = turn_prefix(id);
    for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
      batch.Delete(use.turns, it->key());
    }
    return rocksdb_result(it->status(), doing("conversation " + id));
  });
}

Status ConversationsImpl::put_tail(const BlockRecord& record, std::span<const std::string> payloads,
                                   bool sync) {
  EMBER_CHECK(payloads.size() == record.groups.size(), "one payload for each group");
  std::string key(record.hash.view());
  EMBER_ASSIGN(const std::string value,
               stored_form(sealer_.get(), record.scope, {ValueKind::kTail, key},
                           encode_tail(key, record, payloads)));
  EMBER_TRY(database_.make_room(value.size()));
  return database_.write(sync, [&](rocksdb::WriteBatch& batch, const Use& use) {
    batch.Put(use.tails, key, value);
    return Status();
  });
}

// Synced like all else: after a power cut at most one record of the log may be torn, and so can be
// told from damage (rocksdb_log_check.h).
Status ConversationsImpl::erase_tail(const BlockHash& hash) {
  return database_.write(true, [&](rocksdb::WriteBatch& batch, const Use& use) {
    batch.Delete(use.tails, rocksdb::Slice(hash.view()));
    return Status();
  });
}

Conversations::TailListing ConversationsImpl::walk_tails(const Use& use, bool& whole) const {
  TailListing listing;
  std::unique_ptr<rocksdb::Iterator> it(use.db->NewIterator(rocksdb::ReadOptions(), use.tails));
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
  whole = it->status().ok();
  if (!whole) ++listing.unreadable;
  return listing;
}

// Tails are cache: each costs less than a block to compute again. A table of theirs that cannot be
// read would stop every compaction, and with it the writing of what people say.
Result<Conversations::TailListing> ConversationsImpl::list_tails() {
  bool whole = true;
  TailListing listing;
  {
    EMBER_ASSIGN(const Use use, database_.use());
    listing = walk_tails(use, whole);
  }
  // Opening lists them first, before anything leans on them; who looks later changes nothing.
  const bool opening = !tails_listed_.exchange(true);
  if (whole || !opening || !database_.check_writable().ok()) return listing;
  listing.records.clear();
  EMBER_TRY(database_.renew_tails());
  return listing;
}

Result<std::optional<TailValue>> ConversationsImpl::tail_of(std::string_view key,
                                                            std::string_view value,
                                                            std::string& opened) const {
  EMBER_ASSIGN(const std::optional<std::string_view> plain,
               plain_form(sealer_.get(), {ValueKind::kTail, key}, value, opened));
  if (!plain) return std::optional<TailValue>();
  EMBER_ASSIGN(TailValue tail, decode_tail(key, *plain));
  return std::optional<TailValue>(std::move(tail));
}

Status ConversationsImpl::read_tail_group(const BlockRecord& record, uint32_t group, Bytes raw) {
  EMBER_CHECK(group < record.groups.size(), "no such group in the record");
  EMBER_CHECK(raw.size() == record.groups[group].raw_bytes, "room for exactly one group's bytes");
  EMBER_ASSIGN(const Use use, database_.use());
  rocksdb::PinnableSlice value;
  std::string_view key = record.hash.view();
  rocksdb::Status status =
      use.db->Get(rocksdb::ReadOptions(), use.tails, rocksdb::Slice(key), &value);
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
  EMBER_ASSIGN(const Use use, database_.use());
  FoundRecord found;
  const rocksdb::Slice key(hash.view());
  const rocksdb::Status status =
      use.db->Get(rocksdb::ReadOptions(), use.tails, key, &found.record);
  if (status.IsNotFound()) return std::optional<FoundRecord>();
  if (!status.ok()) found.record.clear();  // its table cannot be read: that it was there is kept
  return std::optional<FoundRecord>(std::move(found));
}

Status ConversationsImpl::checkpoint(const std::string& directory) {
  EMBER_ASSIGN(const Use use, database_.use());
  return checkpoint_database(*use.db, directory);
}

Result<std::vector<std::string>> ConversationsImpl::verify_files() {
  EMBER_ASSIGN(std::vector<std::string> names, database_.unreadable());
  EMBER_ASSIGN(const Use use, database_.use());
  std::unique_ptr<rocksdb::Iterator> it(use.db->NewIterator(rocksdb::ReadOptions(), use.turns));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    std::string_view key = it->key().ToStringView();
    std::string_view value = it->value().ToStringView();
    std::string opened;
    Result<std::optional<std::string_view>> plain =
        plain_form(sealer_.get(), {ValueKind::kTurn, key}, value, opened);
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
