// Vault: the keys of an encrypted store: a random data key for each scope, wrapped by the master
// key; seals and opens the values of both databases.
//
// Journey    disk_tier, conversations -> [vault] -> RocksDB, and the same way back
// Owns       <store>/KEYS (0600, replaced whole and synced), the keys in use
// Invariant  a key is durable before a value is sealed with it; a destroyed key is in no file of
//            the store; no nonce is used twice with one key
// Threads    any
// Not here   the bytes of KEYS and of a sealed value (store/disk/vault_format.h)
//
// Nonces. A value's key is derived from its scope's data key and a 128-bit salt. This process draws
// a salt for each scope, and a new one after kMessagesPerSalt values; the nonce is a counter of 32
// bits, which never repeats below one salt, and 64 random bits, for the case that a running machine
// is copied and both copies go on. So two values share key and nonce only if two salts agree (after
// 2^32 openings of a store with a chance of 2^-64), or in two copies of one machine, for each value
// with a chance of 2^-64. Of one derived key at most 2^30 values are made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "prefix_index/block_hash.h"
#include "store/disk/durable_file.h"
#include "store/disk/seal.h"
#include "store/disk/value_sealer.h"
#include "store/disk/vault_format.h"

namespace ember {

inline constexpr uint32_t kMessagesPerSalt = 1u << 30;

struct VaultOptions {
  std::string store;    // the store's folder
  BaseFileSystem base;  // null: the machine's
  bool read_only = false;
  uint32_t messages_per_salt = kMessagesPerSalt;  // tests make it small
};

class Vault final : public ValueSealer {
 public:
  // Writes KEYS with `secret` wrapped and no data key yet. Errors: kIo, kCapacity.
  static Result<std::unique_ptr<Vault>> create(const VaultOptions& options, const SecretKey& master,
                                               const HashSecret& secret);
  // Errors: kInvalidArgument (another master key), kCorruption, kUnsupported, kIo.
  static Result<std::unique_ptr<Vault>> open(const VaultOptions& options, const SecretKey& master);
  ~Vault() override;

  const HashSecret& secret() const { return secret_; }

  Result<std::string> seal(std::string_view scope, ValuePlace place,
                           std::string_view plain) override;
  Result<std::optional<std::string>> open(ValuePlace place, std::string_view sealed) override;

  // Destroys the data key of a scope: what was sealed with it can be opened no more, and a value
  // sealed for the scope from here on gets a new key. False: it had none. Errors: kIo, kCapacity;
  // then the key lives on.
  Result<bool> forget(std::string_view scope);
  // The scopes that have a key, in order.
  std::vector<std::string> scopes() const;

 private:
  struct Writer {
    SealHead head;
    std::shared_ptr<const SealingKey> key;
    uint32_t messages = 0;
  };
  struct DataKey {
    std::string scope;
    SecretKey key;
    Writer writer;
  };
  using DerivedId = std::pair<uint32_t, SealSalt>;

  Vault(const VaultOptions& options, KeysFile file, const SecretKey& master);
  WrappedKey wrap(uint32_t id, std::string_view plain) const;
  bool unwrap(const WrappedKey& entry, std::string& plain) const;
  Status unwrap_all();
  Status write(const KeysFile& file, bool wipe_old);
  Result<DataKey*> data_key(std::string_view scope) EMBER_REQUIRES(mutex_);
  std::shared_ptr<const SealingKey> derived(const DerivedId& id, const DataKey& key) const;
  std::string keys_path() const { return options_.store + "/KEYS"; }

  VaultOptions options_;
  SealingKey wrapping_;
  HashSecret secret_{};
  mutable Mutex mutex_;
  KeysFile file_ EMBER_GUARDED_BY(mutex_);
  std::map<uint32_t, DataKey> keys_ EMBER_GUARDED_BY(mutex_);
  std::map<std::string, uint32_t, std::less<>> by_scope_ EMBER_GUARDED_BY(mutex_);
  // Derived keys that opened something; emptied when there are many.
  std::map<DerivedId, std::shared_ptr<const SealingKey>> opened_ EMBER_GUARDED_BY(mutex_);
};

}  // namespace ember
