// Store parts: what lies under a store's path, opened together or not at all.
//
// Journey    opening -> [store_parts] -> block_cache
// Owns       the directory's lock, the disk tier and the conversations
// Invariant  damage makes a part null and says why; only what the user must hear of is an error
// Threads    open once
// Not here   rebuilding the index from what they list (store/cache/reopening.h)
#pragma once

#include <memory>
#include <string>

#include "store/conversations.h"
#include "store/disk/durable_file.h"
#include "store/disk_plan.h"
#include "store/disk_tier.h"
#include "store/store_directory.h"

namespace ember {

struct StoreParts {
  std::unique_ptr<StoreDirectory> directory;  // null in tests with a fake disk
  std::unique_ptr<DiskTier> disk;             // null: no usable store
  std::unique_ptr<Conversations> conversations;
  HashSecret secret{};
  DiskPlan plan;
  bool writable = false;
  std::string reason;  // what does not work; empty when all does

  // Errors: as BlockCache::open.
  static Result<StoreParts> open(const std::string& path, const DiskPlan& plan,
                                 uint64_t memtable_bytes, uint64_t block_cache_bytes,
                                 const BaseFileSystem& base = nullptr);
};

}  // namespace ember
