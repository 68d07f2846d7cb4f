// tree: the prefixes of a store as a tree; a run of blocks without a branch is one line.
//
// Journey    block_tree -> [tree] -> lines, or one JSON object a line
// Invariant  reads only; a line fits the terminal
// Threads    the command's
#pragma once

#include <cstdint>

#include "base/result.h"
#include "tools/commands/command_context.h"
#include "tools/commands/look/block_filter.h"

namespace ember {

enum class TreeOrder : uint8_t { kBytes, kAge, kHits, kHash };

struct TreeOptions {
  StoreChoice store;
  BlockFilter filter;                   // of it: prefix, name_space and scope
  TreeOrder order = TreeOrder::kBytes;  // of siblings: largest, latest or most used first
  uint32_t depth = 0;                   // branches below each other; 0: all
  uint64_t limit = 50;                  // lines; 0: all
  bool text = true;
  bool json = false;
};

// Errors: those of opening the store; kInvalidArgument of the filter.
Result<int> run_tree(const TreeOptions& options, CommandContext& context);

}  // namespace ember
