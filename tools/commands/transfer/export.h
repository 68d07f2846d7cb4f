// export: writes what a store holds, or a part of it, to one file that another store imports.
//
// Journey    store_reader -> block_tree -> [export] -> transfer_writer -> a file or a pipe
// Invariant  reads only; parents before children; every group is decoded and proven, and what is
//            damaged is left out with all below it, said, and ends the command with 1; what a
//            tenant has travels only when it is named, what lies sealed only with --clear
// Threads    the command's
// Not here   the file's form (store/transfer/transfer_format.h), which flags name what
//            (tools/commands/transfer/export_plan.h)
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "tools/commands/command_context.h"
#include "tools/commands/look/block_filter.h"

namespace ember {

struct ExportOptions {
  StoreChoice store;
  std::string output;        // a file that is not there yet, or "-"
  std::string conversation;  // its id, or "last"; empty: none is named
  BlockFilter filter;        // without a scope: `shared`
  bool clear = false;        // also from an encrypted store: the file is not sealed
  bool json = false;
};

struct ExportReport {
  uint64_t blocks = 0;
  uint64_t tails = 0;
  uint64_t conversations = 0;
  uint64_t name_spaces = 0;
  uint64_t bytes = 0;        // of the file
  uint64_t damaged = 0;      // blocks, conversations and namespaces that cannot be exported
  uint64_t left_out = 0;     // what was chosen and did not come, for whatever reason
  uint64_t unreachable = 0;  // blocks whose parent is not there: no damage
  uint64_t passed_over = 0;  // went or changed while they were read
};

// Exit code 1 when anything that was chosen is damaged; the rest is exported all the same.
// Errors: those of opening the store; kInvalidArgument (no such block, conversation or scope, an
// encrypted store without `clear`, a file that is there), kIo, kCapacity, kCancelled.
Result<int> run_export(const ExportOptions& options, CommandContext& context);

}  // namespace ember
