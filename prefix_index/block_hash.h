// Block hash: the chained, keyed name of a block: who computed it, for whom, after which tokens.
//
// Journey    tokens -> [block_hash] -> radix_index, record keys
// Invariant  H_i = XXH3-128(secret, namespace, scope, H_{i-1}, tokens_i), every field tagged and
//            length-framed. The hash locates; the tokens decide.
// Threads    any; a hasher is immutable
// Source     XXH3-128 with a 192-byte secret (xxHash 0.8)
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "prefix_index/token.h"

namespace ember {

struct BlockHash {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const BlockHash&, const BlockHash&) = default;
  std::string hex() const;
  std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

inline constexpr size_t kHashSecretBytes = 192;
using HashSecret = std::array<uint8_t, kHashSecretBytes>;

// The name of (weights, numerics that change meaning, layout, ...): see engine/model/identity.h.
using NamespaceHash = BlockHash;

class BlockHasher {
 public:
  // `scope` is "shared" or a tenant's name.
  BlockHasher(const HashSecret& secret, const NamespaceHash& name_space, std::string_view scope);

  // H_0, the parent of first blocks.
  const BlockHash& root() const { return root_; }
  // The hash of the block `tokens` (1 to a full block) that follows `parent`.
  BlockHash next(const BlockHash& parent, TokenSpan tokens) const;

 private:
  HashSecret secret_;
  BlockHash root_;
  std::string prefix_;  // framed namespace and scope, hashed anew with every block
};

// Unkeyed XXH3-64 of a byte string: checksums of records and groups.
uint64_t checksum64(ConstBytes bytes);
// Unkeyed XXH3-128: fingerprints.
BlockHash digest128(ConstBytes bytes);

}  // namespace ember

template <>
struct std::hash<ember::BlockHash> {
  size_t operator()(const ember::BlockHash& name) const noexcept {
    size_t value;
    std::memcpy(&value, name.bytes.data(), sizeof value);
    return value;
  }
};
