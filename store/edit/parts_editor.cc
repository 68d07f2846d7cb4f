// Changes that are the same at rest and in a holder.
#include "store/edit/parts_editor.h"

#include <optional>
#include <utility>

#include "base/clock.h"

namespace ember {

Status PartsEditor::remove_conversation(const std::string& id) {
  return on_parts([this, id]() -> Status {
    // Loading tells whether there is one, damaged or not.
    const Result<Conversation> loaded = parts_.conversations->load(id);
    if (!loaded.ok() && loaded.error().code == ErrorCode::kInvalidArgument) return loaded.error();
    return parts_.conversations->remove(id);
  });
}

Status PartsEditor::add_conversation(const Conversation& conversation) {
  return on_parts([this, conversation]() -> Status {
    Conversations& conversations = *parts_.conversations;
    const Result<Conversation> there = conversations.load(conversation.id);
    const bool absent = !there.ok() && there.error().code == ErrorCode::kInvalidArgument;
    if (!absent) {
      return {ErrorCode::kInvalidArgument,
              "there is a conversation " + conversation.id + " already"};
    }
    Status written = conversations.put_head(conversation);
    for (uint32_t i = 0; written.ok() && i < conversation.turns.size(); ++i) {
      written = conversations.put_turn(conversation.id, i, conversation.turns[i]);
    }
    if (!written.ok()) static_cast<void>(conversations.remove(conversation.id));
    return written;
  });
}

Result<bool> PartsEditor::condemn(const BlockRecord& record, bool has_children,
                                  const std::string& reason) {
  bool kept = false;
  const Status kept_aside = on_parts([&]() -> Status {
    EMBER_ASSIGN(std::optional<FoundRecord> found,
                 record.tail ? parts_.conversations->read_tail_as_found(record.hash)
                             : parts_.disk->read_as_found(record.hash));
    EMBER_ASSIGN(const std::optional<BlockRecord> now,
                 record.tail ? std::optional<BlockRecord>(record)
                             : parts_.disk->read_record(record.hash));
    if (!found || !now || now->epoch != record.epoch) return {};
    kept = true;
    // A quarantine that is full or cannot be written keeps nothing and counts that.
    static_cast<void>(parts_.quarantine->keep(
        {record.hash, record.position, record.tail, reason, std::move(*found)},
        system_clock().unix_us()));
    return {};
  });
  EMBER_TRY(kept_aside);
  if (!kept) return false;
  const bool cached = tell_cache(record.hash);
  const Status given_up = on_parts([&]() -> Status {
    if (record.tail) return cached ? Status() : parts_.conversations->erase_tail(record.hash);
    EMBER_ASSIGN(const std::optional<BlockRecord> now, parts_.disk->read_record(record.hash));
    if (!now || now->epoch != record.epoch) return {};  // it was healed meanwhile
    // What hangs below it by now a cache alone knows; and it flushes itself.
    EMBER_TRY(has_children || cached ? parts_.disk->make_hole(record.hash)
                                     : parts_.disk->erase(record.hash));
    return cached ? Status() : parts_.disk->flush();
  });
  EMBER_TRY(given_up);
  return true;
}

Result<DiskTier::Reindexed> PartsEditor::reindex(bool dry_run) {
  Result<DiskTier::Reindexed> done = DiskTier::Reindexed{};
  EMBER_TRY(on_parts([&]() -> Status {
    done = parts_.disk->reindex(dry_run);
    return {};
  }));
  return done;
}

Result<bool> PartsEditor::drop_quarantined(const std::string& file) {
  return parts_.quarantine->remove(file);
}

Status PartsEditor::retire_epoch(uint32_t epoch) {
  return on_parts([this, epoch] { return parts_.disk->retire_epoch(epoch); });
}

Status PartsEditor::compact() {
  EMBER_TRY(on_parts([this] { return parts_.disk->compact(); }));
  return on_parts([this] { return parts_.conversations->purge(); });
}

}  // namespace ember
