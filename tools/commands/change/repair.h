// repair: makes a store whole again out of what is left of it.
//
// Journey    store_repair; block_tree -> removal_plan, block_proof -> [repair] -> store_editor
// Invariant  nothing goes without being named; with --dry-run nothing is changed; what was mended
//            once is not mended twice; cut short, it can be run again
// Threads    the command's
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "tools/commands/command_context.h"

namespace ember {

struct RepairOptions {
  StoreChoice store;
  bool verify = false;            // also read and prove every block
  uint64_t bytes_per_second = 0;  // most raw bytes proven; 0: no limit
  uint64_t disk_bytes = 0;        // the store's limit; 0: enough for what is there
  bool dry_run = false;
  bool json = false;
};

// Exit code 1 when something is wrong that was not mended. Errors: those of StoreRepair::open and
// of opening the store.
Result<int> run_repair(const RepairOptions& options, CommandContext& context);

}  // namespace ember
