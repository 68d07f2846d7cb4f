// Opening the store: what is damage, what is the user's business, what is only read.
#include "store/cache/store_parts.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "store/disk/open_parts.h"

namespace ember {
namespace {

constexpr uint64_t kConversationsMemtableBytes = uint64_t{4} << 20;
constexpr int64_t kSlowProbeUs = 5'000'000;
constexpr const char* kWithoutStore =
    "; requests run without the store: move its folder away, and a new one is made in its place";

void add_reason(std::string& reason, const std::string& more) {
  if (!reason.empty()) reason += "; ";
  reason += more;
}

// A store of ours that is there, but whose bytes are wrong: requests run without it.
StoreParts unusable(const Error& error) {
  StoreParts parts;
  parts.reason = error.message + kWithoutStore;
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
                                    const BaseFileSystem& base,
                                    const EncryptionOptions& encryption) {
  Result<std::unique_ptr<StoreDirectory>> directory =
      open_store_directory(path, base, encryption);
  if (!directory.ok()) {
    if (directory.error().code == ErrorCode::kCorruption) return unusable(directory.error());
    return directory.error();
  }
  // Not damaged, and nothing is touched: the requests of this process run without it.
  const std::string& trouble = (*directory)->key_trouble();
  StoreParts parts;
  parts.reason = trouble;
  if (!trouble.empty()) return parts;
  parts.directory = std::move(*directory);
  parts.secret = parts.directory->secret();
  parts.shadows = {parts.directory->path() + "/SHADOWS", parts.directory->sealer()};
  parts.plan = plan;
  parts.writable = !parts.directory->read_only();
  if (!parts.writable) {
    add_reason(parts.reason, "opened for reading: " + why_not_writable(path));
  }
  parts.quarantine = Quarantine::open(parts.directory->path() + "/quarantine",
                                      plan.quarantine_bytes, !parts.writable);
  const uint64_t turns_memtable = std::min(kConversationsMemtableBytes, memtable_bytes / 4);
  DiskTierOptions disk;
  disk.directory = parts.directory->path() + "/blocks";
  disk.limit_bytes = plan.blocks_bytes + plan.ballast_bytes;
  disk.ballast_bytes = plan.ballast_bytes;
  disk.free_floor_bytes = plan.free_floor_bytes;
  disk.write_bytes_per_s = plan.write_bytes_per_s;
  disk.memtable_bytes = memtable_bytes - turns_memtable;
  disk.block_cache_bytes = block_cache_bytes;
  disk.scan_later = true;
  disk.sealer = parts.directory->sealer();
  EMBER_TRY(parts.open_blocks(disk, base));

  ConversationsOptions turns;
  turns.directory = parts.directory->path() + "/conversations";
  turns.limit_bytes = plan.conversations_bytes;
  turns.memtable_bytes = turns_memtable;
  turns.sealer = parts.directory->sealer();
  EMBER_TRY(parts.open_conversations_of(turns, base));
  const std::string open_to_others = parts.directory->open_to_others();
  if (!open_to_others.empty()) add_reason(parts.reason, open_to_others);
  return parts;
}

Status StoreParts::open_blocks(DiskTierOptions options, const BaseFileSystem& base) {
  options.read_only = !writable;
  options.set_aside = [keeper = quarantine.get()](const QuarantineEntry& entry) {
    // One that is full or cannot be written keeps nothing and counts that.
    static_cast<void>(keeper->keep(entry, system_clock().unix_us()));
  };
  Result<std::unique_ptr<DiskTier>> blocks = open_disk_tier(options, base);
  if (directory->created()) EMBER_TRY(complete_or_discard(*directory, blocks));
  if (!blocks.ok()) {
    // What people said can be read all the same.
    add_reason(reason, blocks.error().message + kWithoutBlocks);
    return {};
  }
  disk = std::move(*blocks);
  // An existing store on a full disk can still be read, and is written again when it has space.
  const DiskTierStats opened = disk->stats();
  if (writable && opened.reading_only) {
    writable = opened.waits_for_space;
    add_reason(reason, opened.health);
  }
  return writable && !opened.reading_only ? probe() : Status{};
}

// A full disk is the business of those who make room; anything else that does not come back as it
// was written means that nothing more is written.
Status StoreParts::probe() {
  const int64_t began_us = system_clock().now_us();
  const Status probed = disk->probe();
  const int64_t took_us = system_clock().now_us() - began_us;
  if (took_us > kSlowProbeUs) {
    add_reason(reason, "the start-up probe took " + std::to_string(took_us / 1'000'000) +
                           " s: the drive is slow");
  }
  if (probed.ok() || probed.error().code == ErrorCode::kCapacity) return {};
  if (directory->created()) {
    disk.reset();
    directory->discard();
    return probed;
  }
  writable = false;
  add_reason(reason, "reading only: " + probed.error().message);
  return {};
}

Status StoreParts::open_conversations_of(ConversationsOptions options,
                                         const BaseFileSystem& base) {
  options.read_only = !writable;
  Result<std::unique_ptr<Conversations>> opened = open_conversations(options, base);
  if (opened.ok()) {
    conversations = std::move(*opened);
    return {};
  }
  if (directory->created()) {
    disk.reset();
    directory->discard();
    return opened.error();
  }
  add_reason(reason, "no conversations and tails: " + opened.error().message);
  return {};
}

}  // namespace ember
