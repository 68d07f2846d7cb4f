// Store parts: what lies under a store's path, opened together or not at all.
//
// Journey    opening -> [store_parts] -> block_cache
// Owns       the directory's lock, the disk tier, the conversations and the quarantine
// Invariant  damage makes a part null and says why; only what the user must hear of is an error
// Threads    open once
// Not here   rebuilding the index from what they list (store/cache/reopening.h)
#pragma once

#include <memory>
#include <string>

#include "store/cache/shadow_file.h"
#include "store/conversations.h"
#include "store/disk/durable_file.h"
#include "store/disk_plan.h"
#include "store/disk_tier.h"
#include "store/quarantine.h"
#include "store/store_directory.h"

namespace ember {

// What to do about a database of blocks that cannot be used; follows the error, which names it.
inline constexpr const char* kWithoutBlocks =
    "; requests run without stored blocks: emberkv repair saves what is left of them, or move that "
    "folder away, and a new one is made in its place; conversations are not in it";

struct StoreParts {
  std::unique_ptr<StoreDirectory> directory;  // null in tests with a fake disk
  std::unique_ptr<Quarantine> quarantine;     // null: what is proven wrong is not kept
  std::unique_ptr<DiskTier> disk;             // null: no usable store
  std::unique_ptr<Conversations> conversations;
  ShadowPlace shadows;  // no path: they are not kept
  HashSecret secret{};
  DiskPlan plan;
  bool writable = false;
  std::string reason;  // what does not work; empty when all does

  // Errors: as BlockCache::open.
  static Result<StoreParts> open(const std::string& path, const DiskPlan& plan,
                                 uint64_t memtable_bytes, uint64_t block_cache_bytes,
                                 const BaseFileSystem& base = nullptr,
                                 const EncryptionOptions& encryption = {});

 private:
  Status open_blocks(DiskTierOptions options, const BaseFileSystem& base);
  Status probe();
  Status open_conversations_of(ConversationsOptions options, const BaseFileSystem& base);
};

}  // namespace ember
