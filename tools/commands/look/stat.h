// stat: what a store holds and how well it is, without a model.
//
// Journey    disk_tier -> [stat] -> a table or one JSON object
// Invariant  reads only; every figure is counted or measured at the moment of the call
// Threads    the command's
#pragma once

#include "base/result.h"
#include "tools/commands/command_context.h"

namespace ember {

struct StatOptions {
  StoreChoice store;
  bool brief = false;  // only what costs nothing, however large the store is
  bool json = false;
};

// Exit code 1 when the store cannot be opened; the report then says why.
Result<int> run_stat(const StatOptions& options, CommandContext& context);

}  // namespace ember
