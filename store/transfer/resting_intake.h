// Resting intake: takes records into a store that no process holds, or into a new one.
//
// Journey    import -> [resting_intake] -> store_parts -> disk_tier, conversations
// Owns       the open store, and its lock, until it ends
// Invariant  the store's limits hold; nothing is evicted for what comes; a store that was made for
//            an import that fails is taken back
// Threads    one
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/encryption.h"
#include "store/record_intake.h"

namespace ember {

// Whether no store is at `path` that holds anything: there is none, or its making was cut short
// before anything came into it. Opening it to write makes it, or goes on with that.
bool nothing_is_stored(const std::string& path);

class RestingIntake : public RecordIntake {
 public:
  // `disk_bytes`: the store's limit; 0: the default for its place. Errors: kBusy (held by another
  // process), kIo and kCapacity (it cannot be written), and those of StoreDirectory::open.
  static Result<std::unique_ptr<RestingIntake>> open(const std::string& path, uint64_t disk_bytes,
                                                     const EncryptionOptions& encryption);
  // After a failure: a store that open() has made goes again. Nothing else is called then.
  virtual void take_back() = 0;
};

}  // namespace ember
