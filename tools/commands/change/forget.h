// forget: makes what a scope left in a store unreadable, and on request removes its bytes.
//
// Journey    store/forget.h, store_editor <- [forget] <- command line, rm --scope
// Invariant  nothing is changed with --dry-run
// Threads    the command's
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/forget.h"
#include "tools/commands/command_context.h"

namespace ember {

struct ForgetOptions {
  StoreChoice store;
  uint64_t disk_bytes = 0;  // 0: enough for what is there
  ForgetRequest request;
  bool json = false;
};

// Exit code 1 when bytes stay although --now was given. Errors: those of opening the store and of
// forget_scope; kBusy in a process where requests run.
Result<int> run_forget(const ForgetOptions& options, CommandContext& context);

}  // namespace ember
