// Forget: makes all that a scope left in a store unreadable, and on request removes its bytes.
//
// Journey    BlockCache::forget, the command forget -> [forget] -> store_directory, disk_tier,
//            conversations
// Invariant  in an encrypted store the scope's key is destroyed before anything is erased, so what
//            a crash leaves behind can be read by nobody, and the next opening erases it
// Threads    the write lane
// Not here   what the index in RAM knows (store/block_cache.h)
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/conversations.h"
#include "store/disk_tier.h"
#include "store/store_directory.h"

namespace ember {

struct ForgetRequest {
  std::string scope;     // whose blocks, tails and conversations; not looked at when `all`
  bool all = false;      // every scope
  bool now = false;      // also remove the bytes before it returns
  bool dry_run = false;  // only say what would be forgotten
};

struct ForgetReport {
  uint64_t blocks = 0;         // of the scope
  uint64_t blocks_below = 0;   // of other scopes, that hang below them and so cannot be reached
  uint64_t tails = 0;
  uint64_t conversations = 0;
  uint64_t stored_bytes = 0;  // payload of the blocks
  uint64_t keys = 0;          // destroyed data keys; 0 for a store in clear
  uint64_t epochs = 0;        // that hold bytes of the blocks
  // True: no file of the store holds a byte of its latents, tokens and texts any more. Else these
  // go, at the latest, when their epochs are retired to make room.
  bool bytes_gone = false;
  std::string reason;  // why the bytes are still there although `now` was asked for
};

// Errors: kInvalidArgument (no scope named), kIo and kCapacity (a key that cannot be destroyed:
// then nothing was forgotten; a row that cannot be erased: ask again). `conversations` may be null.
Result<ForgetReport> forget_scope(StoreDirectory* directory, DiskTier& disk,
                                  Conversations* conversations, const ForgetRequest& request);

}  // namespace ember
