// import: takes into a store what another one has exported.
//
// Journey    a file, a pipe -> import_source -> [import] -> store/transfer/import.h
// Invariant  nothing is changed before all of the file is proven; without a store one is made;
//            what does not fit is not entered in part
// Threads    the command's
// Not here   what is proven (store/transfer/transfer_reader.h)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/commands/command_context.h"

namespace ember {

struct ImportOptions {
  StoreChoice store;
  std::string file;                 // or "-": standard input
  std::vector<std::string> scopes;  // "FROM=TO": whose a scope of the file becomes
  uint64_t disk_bytes = 0;          // the store's limit at rest; 0: its default
  bool dry_run = false;
  bool json = false;
};

// Errors: those of reading the file and opening the store; kCorruption, kUnsupported and
// kInvalidArgument for a file that is refused; kCapacity for one that does not fit.
Result<int> run_import(const ImportOptions& options, CommandContext& context);

}  // namespace ember
