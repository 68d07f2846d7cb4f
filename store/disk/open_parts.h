// Open parts: the parts of a store, opened on a file system that a test may have put below them.
//
// Journey    store_parts -> [open_parts] -> store_directory, disk_tier, conversations
// Invariant  on the machine's file system (null) each is exactly its public open()
// Threads    any
#pragma once

#include <memory>
#include <string>

#include "store/conversations.h"
#include "store/disk/durable_file.h"
#include "store/disk_tier.h"
#include "store/store_directory.h"

namespace ember {

Result<std::unique_ptr<StoreDirectory>> open_store_directory(
    const std::string& path, const BaseFileSystem& base, const EncryptionOptions& encryption = {});
Result<std::unique_ptr<DiskTier>> open_disk_tier(const DiskTierOptions& options,
                                                 const BaseFileSystem& base);
Result<std::unique_ptr<Conversations>> open_conversations(const ConversationsOptions& options,
                                                          const BaseFileSystem& base);

}  // namespace ember
