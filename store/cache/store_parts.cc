// Opening the store: what is damage, what is the user's business, what is only read.
#include "store/cache/store_parts.h"

#include <algorithm>
#include <utility>

#include "store/disk/open_parts.h"

namespace ember {
namespace {

constexpr uint64_t kConversationsMemtableBytes = uint64_t{4} << 20;

void add_reason(std::string& reason, const std::string& more) {
  if (!reason.empty()) reason += "; ";
  reason += more;
}

// A store of ours that is there, but whose bytes are wrong: requests run without it.
StoreParts unusable(const Error& error) {
  StoreParts parts;
  parts.reason = error.message;
  return parts;
}

// A new store is whole or it is not there: one that can only be read would hold nothing.
Status complete_or_discard(StoreDirectory& directory, Result<std::unique_ptr<DiskTier>>& blocks) {
  if (blocks.ok() && !(*blocks)->stats().reading_only) return {};
  const Error why = blocks.ok()
                        ? Error{ErrorCode::kIo, directory.path() + ": a new store cannot " +
                                                    "be made there: " + (*blocks)->stats().health}
                        : blocks.error();
  if (blocks.ok()) blocks->reset();
  directory.discard();
  return why;
}

}  // namespace

Result<StoreParts> StoreParts::open(const std::string& path, const DiskPlan& plan,
                                    uint64_t memtable_bytes, uint64_t block_cache_bytes,
                                    const BaseFileSystem& base) {
  Result<std::unique_ptr<StoreDirectory>> directory = open_store_directory(path, base);
  if (!directory.ok()) {
    if (directory.error().code == ErrorCode::kCorruption) return unusable(directory.error());
    return directory.error();
  }
  StoreParts parts;
  parts.directory = std::move(*directory);
  parts.secret = parts.directory->secret();
  parts.plan = plan;
  parts.writable = !parts.directory->read_only();
  if (!parts.writable) {
    add_reason(parts.reason, "opened for reading: " + why_not_writable(path));
  }
  const bool created = parts.directory->created();

  const uint64_t turns_memtable = std::min(kConversationsMemtableBytes, memtable_bytes / 4);
  DiskTierOptions disk;
  disk.directory = parts.directory->path() + "/blocks";
  disk.limit_bytes = plan.blocks_bytes;
  disk.memtable_bytes = memtable_bytes - turns_memtable;
  disk.block_cache_bytes = block_cache_bytes;
  disk.read_only = !parts.writable;
  disk.scan_later = true;
  Result<std::unique_ptr<DiskTier>> blocks = open_disk_tier(disk, base);
  if (created) EMBER_TRY(complete_or_discard(*parts.directory, blocks));
  if (!blocks.ok()) return unusable(blocks.error());
  parts.disk = std::move(*blocks);
  // An existing store on a full disk can still be read.
  const DiskTierStats opened = parts.disk->stats();
  if (parts.writable && opened.reading_only) {
    parts.writable = false;
    add_reason(parts.reason, opened.health);
  }

  ConversationsOptions turns;
  turns.directory = parts.directory->path() + "/conversations";
  turns.limit_bytes = plan.conversations_bytes;
  turns.memtable_bytes = turns_memtable;
  turns.read_only = !parts.writable;
  Result<std::unique_ptr<Conversations>> conversations = open_conversations(turns, base);
  if (conversations.ok()) {
    parts.conversations = std::move(*conversations);
  } else if (created) {
    parts.disk.reset();
    parts.directory->discard();
    return conversations.error();
  } else {
    add_reason(parts.reason, "no conversations and tails: " + conversations.error().message);
  }
  return parts;
}

}  // namespace ember
