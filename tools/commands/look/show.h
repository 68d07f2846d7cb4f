// show: one block in full: what its record says, what its tokens say, how its values lie.
//
// Journey    store_reader -> [show] -> text or one JSON object
// Invariant  reads only; values are proven against their checksums before they are described
// Threads    the command's
#pragma once

#include <string>

#include "base/result.h"
#include "tools/commands/command_context.h"

namespace ember {

struct ShowOptions {
  StoreChoice store;
  std::string hash;  // or its first digits
  bool json = false;
};

// Exit code 1 when a group is damaged; the report then says which. Errors: kInvalidArgument naming
// the digits where no block, or more than one, begins so.
Result<int> run_show(const ShowOptions& options, CommandContext& context);

}  // namespace ember
