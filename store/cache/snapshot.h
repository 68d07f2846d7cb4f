// Snapshot: a copy of an open store in another folder, whole or not there.
//
// Journey    BlockCache::snapshot -> [snapshot] -> a folder that opens as a store
// Invariant  the folder has its name only once everything in it is durable; what a crash leaves is
//            called <target>.unfinished
// Threads    the write lane: nothing is put meanwhile
#pragma once

#include <string>

#include "base/result.h"
#include "store/conversations.h"
#include "store/disk_tier.h"

namespace ember {

// Errors: kInvalidArgument (the target is there, or lies in the store), kIo, kCapacity.
Status take_snapshot(const std::string& store, const std::string& target, DiskTier& disk,
                     Conversations* conversations);

}  // namespace ember
