// Stored prefix: a block that is named by its hash, and all before it, as tokens.
//
// Journey    hash -> block_tree -> [stored_prefix] -> pin, warm
// Invariant  whole blocks from the first one on, or an error
// Threads    the command's
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "prefix_index/token.h"
#include "store/store_reader.h"
#include "store/tenants.h"
#include "tools/commands/look/block_tree.h"

namespace ember {

struct StoredPrefix {
  std::vector<BlockHash> blocks;
  std::vector<TokenId> tokens;
  RequestScope scope;
  NamespaceHash name_space;
};

// `digits`: the last block's hash, or its first ones. Errors: kInvalidArgument where none or more
// begin so, for a tail, and where a block before it is not there.
Result<StoredPrefix> stored_prefix(const std::string& digits, StoreReader& reader,
                                   const BlockTree& tree);

}  // namespace ember
