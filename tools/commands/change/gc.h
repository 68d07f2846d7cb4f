// gc: gives back now what would be given back later, and brings a store within its limit.
//
// Journey    gc_plan, removal_plan -> [gc] -> store_editor
// Invariant  what --dry-run shows is what a run does
// Threads    the command's
#pragma once

#include <cstdint>

#include "base/result.h"
#include "tools/commands/command_context.h"

namespace ember {

struct GcOptions {
  StoreChoice store;
  bool foreign = false;       // also blocks of other numerics builds
  uint64_t dead_percent = 33;  // of an epoch, from which on it is rewritten
  uint64_t disk_bytes = 0;    // bring the store within this; 0: it is as large as it may be
  bool dry_run = false;
  bool json = false;
};

// Errors: those of opening the store; kInvalidArgument for a limit where a process holds the store.
Result<int> run_gc(const GcOptions& options, CommandContext& context);

}  // namespace ember
