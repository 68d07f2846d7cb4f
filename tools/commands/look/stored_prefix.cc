// The way from the first block to the one that is named, record by record.
#include "tools/commands/look/stored_prefix.h"

#include <optional>

#include "tools/commands/look/block_filter.h"

namespace ember {

Result<StoredPrefix> stored_prefix(const std::string& digits, StoreReader& reader,
                                   const BlockTree& tree) {
  BlockFilter filter;
  filter.prefix = digits;
  if (digits.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the hash is empty, expected its first digits"};
  }
  EMBER_TRY(check_filter(filter));
  EMBER_ASSIGN(const uint32_t end, start_of(tree, digits));
  const BlockNode& last = tree.node(end);
  if (last.tail) {
    return Error{ErrorCode::kInvalidArgument, digits + ": is a tail, expected a full block"};
  }
  StoredPrefix prefix;
  const std::string& scope = tree.scopes()[last.scope];
  if (scope != kSharedScopeName) prefix.scope.tenant = scope;
  prefix.name_space = tree.name_spaces()[last.name_space];
  for (const uint32_t index : tree.path_to(end)) {
    if (tree.node(index).orphan) {
      return Error{ErrorCode::kInvalidArgument,
                   digits + ": cannot be reached: blocks before it are not there"};
    }
    EMBER_ASSIGN(const std::optional<BlockRecord> record, reader.record(tree.node(index).hash));
    if (!record) return Error{ErrorCode::kInvalidArgument, digits + ": is no longer there"};
    prefix.blocks.push_back(record->hash);
    prefix.tokens.insert(prefix.tokens.end(), record->tokens.begin(), record->tokens.end());
  }
  return prefix;
}

}  // namespace ember
