// diff: what one store knows that another does not, by tokens.
//
// Journey    two store_readers -> [diff] -> a table, or one JSON object a line
// Invariant  reads only; hashes are keyed with each store's own secret, so blocks are compared by
//            namespace, scope and all tokens up to their end
// Threads    the command's
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "tools/commands/command_context.h"

namespace ember {

struct DiffOptions {
  StoreChoice store;
  std::string other;    // path of the second; what else is given is for both
  uint64_t limit = 50;  // lines; 0: all
  bool text = true;     // with what the tokens say
  bool json = false;
};

// Exit code 1 when they differ, as diff(1) has it. Errors: those of opening either store.
Result<int> run_diff(const DiffOptions& options, CommandContext& context);

}  // namespace ember
