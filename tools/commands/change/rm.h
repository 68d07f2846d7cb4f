// rm: removes blocks by prefix, conversation, scope or age.
//
// Journey    block_tree -> removal_plan -> [rm] -> store_editor
// Invariant  what --dry-run shows is what a run would remove; less of it goes where a running
//            process needs it by then, never more
// Threads    the command's
#pragma once

#include <string>

#include "base/result.h"
#include "tools/commands/command_context.h"
#include "tools/commands/confirm.h"
#include "tools/commands/look/block_filter.h"

namespace ember {

struct RmOptions {
  StoreChoice store;
  BlockFilter filter;
  std::string conversation;  // an id, or "last"; empty: not by conversation
  bool keep_blocks = false;  // of the conversation
  Consent consent;
  bool json = false;
};

// Errors: those of opening the store and of the filter; kBusy for a conversation that is open.
Result<int> run_rm(const RmOptions& options, CommandContext& context);

}  // namespace ember
