// du: who fills a store: bytes by namespace, scope or prefix.
//
// Journey    block_tree -> [du] -> a table, or one JSON object a line
// Invariant  reads only; the lines' sums are the store's, each block counted once
// Threads    the command's
#pragma once

#include <cstdint>

#include "base/result.h"
#include "tools/commands/command_context.h"
#include "tools/commands/look/block_filter.h"

namespace ember {

enum class DuBy : uint8_t { kNamespace, kScope, kPrefix };

struct DuOptions {
  StoreChoice store;
  BlockFilter filter;  // of it: prefix, name_space and scope
  DuBy by = DuBy::kPrefix;
  uint64_t limit = 20;  // lines; 0: all
  bool json = false;
};

// Errors: those of opening the store; kInvalidArgument of the filter.
Result<int> run_du(const DuOptions& options, CommandContext& context);

}  // namespace ember
