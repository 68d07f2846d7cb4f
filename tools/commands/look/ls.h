// ls: the blocks of a store, one a line, in the order that one asks for.
//
// Journey    block_tree -> [ls] -> a table or one JSON object a line
// Invariant  reads only; memory is the block tree's, or a page's with --sort none
// Threads    the command's
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "tools/commands/command_context.h"
#include "tools/commands/look/block_filter.h"

namespace ember {

enum class LsOrder : uint8_t { kChain, kNone, kAge, kHits, kBytes, kTokens };

struct LsOptions {
  StoreChoice store;
  BlockFilter filter;
  LsOrder order = LsOrder::kChain;
  bool reverse = false;
  uint64_t limit = 50;  // lines; 0: all
  bool text = true;     // with what the tokens say
  bool json = false;
};

// Errors: those of opening the store; kInvalidArgument of the filter.
Result<int> run_ls(const LsOptions& options, CommandContext& context);

}  // namespace ember
