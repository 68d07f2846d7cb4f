// Store repair: databases of a store that RocksDB cannot use as they are, made anew from what is
// left of them.
//
// Journey    repair -> [store_repair] -> blocks_salvage, conversations_salvage -> one that opens
// Owns       the store's lock, but for looking
// Invariant  what is broken is moved aside, never deleted; what was saved is proven; a process that
//            is killed in the midst leaves a store that can be repaired again
// Threads    one
// Not here   what can be mended in a database that works (store/store_editor.h)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/conversations.h"
#include "store/encryption.h"

namespace ember {

// What is wrong with one of the two databases.
struct DatabaseTrouble {
  std::string reason;               // why it does not open; empty: it does
  std::vector<std::string> broken;  // files that are not what was written, or not there
  std::vector<std::string> unreadable;  // of what whole files hold: what and why
  bool half_repaired = false;       // an earlier repair had its successor ready

  bool any() const {
    return !reason.empty() || !broken.empty() || !unreadable.empty() || half_repaired;
  }
};

// Conversations and tails that cannot be read whole, each with the reason.
std::vector<std::string> unreadable_in(Conversations& conversations);

struct Renewed {
  bool blocks = false;         // the database of blocks was made anew
  bool conversations = false;  // and that of conversations
  std::string aside;           // where the old ones are now; empty: nowhere
  std::vector<std::string> kept_files;  // below `aside`
  uint64_t removed_files = 0;  // of the old ones: whole, and all that is in them was saved
  uint64_t removed_bytes = 0;

  uint64_t saved_blocks = 0;  // proven
  uint64_t saved_bytes = 0;
  uint64_t holes = 0;       // records without groups, above blocks that were saved
  uint64_t lost_blocks = 0;  // records whose groups are not there or wrong
  uint64_t unreadable_rows = 0;
  uint64_t saved_conversations = 0;
  uint64_t saved_turns = 0;
  uint64_t saved_tails = 0;
  std::vector<std::string> cut_conversations;   // ids: turns at their end are missing
  std::vector<std::string> lost_conversations;  // ids: they can be resumed no more
};

class StoreRepair {
 public:
  // Looks at the store's files. `look_only`: takes no lock. Errors: kCorruption where its identity
  // or its keys are damaged, which nothing can replace; kBusy, kInvalidArgument, kIo.
  static Result<std::unique_ptr<StoreRepair>> open(const std::string& path,
                                                   const EncryptionOptions& encryption,
                                                   uint64_t disk_bytes, bool look_only);
  virtual ~StoreRepair() = default;

  virtual const DatabaseTrouble& blocks() const = 0;
  virtual const DatabaseTrouble& conversations() const = 0;
  // Makes anew what has trouble. `on_progress` returns false to stop: nothing is changed then.
  // Errors: kCapacity where a second copy does not fit, kIo, kCancelled.
  using OnProgress = std::function<bool(const char* what, double done)>;
  virtual Result<Renewed> renew(const OnProgress& on_progress) = 0;
};

}  // namespace ember
