// Vault format: the KEYS file and the head of a sealed value, drawn once.
//
// Journey    vault -> [vault_format] -> <store>/KEYS
// Invariant  every length is bounded before it is trusted; a changed byte of KEYS is damage,
//            another version is refused by name
// Threads    any; pure
//
//   KEYS               bytes
//     magic "EMBV"         4
//     version              4   kVaultVersion
//     salt                32   random; the wrapping key is derived from it and the master key
//     check               16   derived likewise: tells a wrong master key from damage
//     next key id          4   ids below it that have no entry were forgotten
//     entries              4   then for each:
//       id                 4   0: the hash secret; else a data key
//       length             4   of what follows
//       nonce             12
//       sealed                 AES-256-GCM under the wrapping key, context "emberkv key" and id:
//                              of a data key: the key 32, its scope's name; of the secret: itself
//       tag               16
//     checksum             8   XXH3-64 of all bytes before it
//
//   sealed value       bytes
//     magic "EMS"          3
//     version              1   kSealVersion
//     key id               4   which data key, thus which scope, without its name
//     salt                16   random; the value's key is derived from it and the data key
//     nonce               12   a counter 4 (big-endian), random 8
//     sealed                   as long as the value; context: magic to salt, kind, key of the row
//     tag                 16
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/disk/seal.h"
#include "store/disk/value_sealer.h"

namespace ember {

inline constexpr uint32_t kVaultVersion = 1;
inline constexpr uint8_t kSealVersion = 1;
inline constexpr uint32_t kSecretId = 0;
inline constexpr size_t kMostKeysBytes = 64u << 20;  // of the KEYS file

using SealSalt = std::array<char, 16>;

struct WrappedKey {
  uint32_t id = 0;
  Nonce nonce{};
  std::string sealed;
};

struct KeysFile {
  std::array<char, 32> salt{};
  std::array<char, 16> check{};
  uint32_t next_id = 1;
  std::vector<WrappedKey> entries;
};

std::string encode_keys(const KeysFile& keys);
// Errors: kCorruption, kUnsupported; `path` is named in them.
Result<KeysFile> decode_keys(const std::string& path, std::string_view bytes);

struct SealHead {
  uint32_t key_id = 0;
  SealSalt salt{};
  Nonce nonce{};
};
inline constexpr size_t kSealContextBytes = 4 + 4 + 16;  // what of the head is context
inline constexpr size_t kSealHeadBytes = kSealContextBytes + kNonceBytes;
static_assert(kSealHeadBytes + kTagBytes == kValueSealBytes);

std::string encode_seal_head(const SealHead& head);
// Errors: kCorruption, kUnsupported.
Result<SealHead> decode_seal_head(std::string_view sealed);

}  // namespace ember
