// Encryption: whether a store's values are sealed, and where the key lies that opens them.
//
// Journey    block_cache, commands -> [encryption] -> store_directory
// Invariant  off by default; the master key is never inside the store
// Threads    any; pure
// Not here   the keys of the scopes (store/disk/vault.h), what is sealed (docs/encryption.md)
#pragma once

#include <string>

namespace ember {

struct EncryptionOptions {
  bool on = false;
  std::string key_file;  // empty: default_key_file(). Made, 0600, when a new store is made
};

// $XDG_CONFIG_HOME/emberkv/master.key, or ~/.config/emberkv/master.key.
std::string default_key_file();

}  // namespace ember
