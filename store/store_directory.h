// Store directory: one process holds it; its identity file says what it is and keeps the secret.
//
// Journey    opening a store -> [store_directory] -> disk_tier, conversations
// Owns       <store>/IDENTITY (version, form, secret, checksum); the lock on <store>/LOCK (holder's
//            pid); in an encrypted store the keys in <store>/KEYS, the wrapped secret among them
// Invariant  a changed byte in IDENTITY is damage (kCorruption), not another version; an intact
//            file of another version is kUnsupported and is left as it was
// Threads    open once
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "store/encryption.h"

namespace ember {

inline constexpr uint32_t kStoreVersion = 2;

class ValueSealer;  // store/disk/value_sealer.h

class StoreDirectory {
 public:
  // Makes the store if `path` is absent or an empty folder; files 0600, folders 0700.
  // Errors: kBusy naming the holder's pid; kUnsupported naming both versions; kCorruption; kIo and
  // kCapacity naming the path (a new store that cannot be made leaves nothing behind);
  // kInvalidArgument for a folder that is no store, for an encrypted one opened without encryption,
  // and for one in clear opened with it. A key that is missing or another store's is no error: see
  // key_trouble().
  static Result<std::unique_ptr<StoreDirectory>> open(const std::string& path,
                                                      const EncryptionOptions& encryption = {});
  // For inspection: takes no lock, makes nothing. `holder_pid` is set when a process holds it.
  static Result<std::unique_ptr<StoreDirectory>> open_read_only(
      const std::string& path, const EncryptionOptions& encryption = {});
  // The version that an intact IDENTITY names, whichever it is. Errors: kCorruption; kIo naming the
  // path; kInvalidArgument for another file.
  static Result<uint32_t> stored_version(const std::string& path);
  virtual ~StoreDirectory() = default;

  virtual const std::string& path() const = 0;
  virtual const HashSecret& secret() const = 0;  // zeros where there is key_trouble()
  virtual bool created() const = 0;    // by this call
  virtual bool read_only() const = 0;  // asked for, or because nothing can be written there
  virtual int holder_pid() const = 0;  // of another process; 0: none

  // What the two databases seal with; null when the store lies in clear.
  virtual std::shared_ptr<ValueSealer> sealer() const = 0;
  // Why the values of an encrypted store cannot be read just now, in one line; empty: they can.
  // Nothing is to be opened then, and nothing is lost: the right key opens all of it.
  virtual const std::string& key_trouble() const = 0;
  // Scopes that have a data key; none when the store lies in clear.
  virtual std::vector<std::string> key_scopes() const = 0;
  // Destroys a scope's data key at once and for ever. False: it had none. Errors: kIo, kCapacity.
  virtual Result<bool> destroy_key(const std::string& scope) = 0;
  // What of the store other users can reach, and what to do; empty: nothing.
  virtual std::string open_to_others() const = 0;

  // Takes back a store that this call created and that could not be completed: all its files, and
  // the folders that were made for it.
  virtual void discard() = 0;
};

// Why nothing can be written below the store's folder just now; empty: nothing speaks against it.
std::string why_not_writable(const std::string& path);

// $XDG_DATA_HOME/emberkv, or ~/.local/share/emberkv.
std::string default_store_path();

}  // namespace ember
