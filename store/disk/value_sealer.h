// Value sealer: how the two databases hand their values to encryption and get them back.
//
// Journey    disk_tier, conversations -> [value_sealer] -> RocksDB, and the same way back
// Invariant  a sealed value opens only at the place that it was sealed for; no sealer (a null
//            pointer in the options) means that values lie in clear, byte for byte as encoded
// Threads    any
// Not here   keys and nonces (store/disk/vault.h), checksums of rows (store/disk/sealed_value.h)
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ember {

// What a value is. Part of what is authenticated, as is its key: so a value that is moved to
// another key, or to a row of another kind, does not open.
enum class ValueKind : char {
  kGroup = 'd',   // key: block hash, group; without the epoch, so that rewriting moves sealed bytes
  kRecord = 'b',  // key: block hash
  kTurn = 'c',    // heads and turns; key: as in conversations_format.h
  kTail = 't',    // key: block hash
  kShadows = 's',  // key: number of the frame (store/cache/shadow_file.h)
};

struct ValuePlace {
  ValueKind kind = ValueKind::kGroup;
  std::string_view key;
};

class ValueSealer {
 public:
  virtual ~ValueSealer() = default;

  // `plain` under the key of `scope`, which is made, and is durable, on its first use. The sealed
  // value is kValueSealBytes longer. Errors: kIo, kCapacity (a new key cannot be stored).
  virtual Result<std::string> seal(std::string_view scope, ValuePlace place,
                                   std::string_view plain) = 0;
  // The plain value; nothing when the key of its scope was destroyed: such a value is gone, and no
  // damage. Errors: kCorruption.
  virtual Result<std::optional<std::string>> open(ValuePlace place, std::string_view sealed) = 0;
};

// The two ways through a sealer that may be null, which leaves values as they are. What was opened
// lies in `opened`, which outlives the view.
Result<std::string> stored_form(ValueSealer* sealer, std::string_view scope, ValuePlace place,
                                std::string plain);
Result<std::optional<std::string_view>> plain_form(ValueSealer* sealer, ValuePlace place,
                                                   std::string_view stored, std::string& opened);

// What a sealed value is longer than its plain form: header 36, tag 16.
inline constexpr size_t kValueSealBytes = 52;

}  // namespace ember
