// top: a store as it lives: what stat tells, again and again, on a whole terminal.
//
// Journey    stat, tree (of the process that holds the store) -> [top] -> the terminal
// Invariant  reads only; one question is under way at a time, and keys are heard meanwhile
// Threads    the command's; questions are asked on another
// Not here   what the figures say (top_model.h), the terminal (top_screen.h)
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "tools/commands/command_context.h"

namespace ember {

struct TopOptions {
  StoreChoice store;
  std::optional<int64_t> interval_us;  // absent: 2 s
  bool once = false;  // one frame as text; of a running process after one interval
  bool json = false;  // an object an interval
};

// Errors: those of opening the store, the first time; kInvalidArgument without a terminal.
Result<int> run_top(const TopOptions& options, CommandContext& context);

}  // namespace ember
