// Namespace identity: the hash that names a namespace, from the fields of its identity and its
// layout; so whoever has both can prove that they belong to the name.
//
// Journey    engine/model/identity, a file of another store -> [namespace_identity] -> block_hash
// Invariant  every field is tagged and length-framed: no two sets of fields have one framing
// Threads    any; pure
// Not here   which fields there are (engine/model/identity.h)
#pragma once

#include <span>
#include <string>
#include <utility>

#include "prefix_index/block_hash.h"
#include "store/kv_layout.h"

namespace ember {

using IdentityField = std::pair<std::string, std::string>;

NamespaceHash namespace_hash(std::span<const IdentityField> fields, const KvLayout& layout);

}  // namespace ember
