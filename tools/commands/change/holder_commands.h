// Holder commands: what only the process that holds a store can do with it: pins, snapshots.
//
// Journey    command line -> holder -> [holder_commands] -> block_cache, on the engine thread
// Invariant  without a process that holds the store they are refused, and say why
// Threads    the command's
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "tools/commands/command_context.h"

namespace ember {

struct PinOptions {
  StoreChoice store;
  std::string hash;               // first digits of a block: it and all before it
  std::optional<int64_t> for_us;  // absent: an hour
  bool json = false;
};

struct UnpinOptions {
  StoreChoice store;
  std::string hash;
  bool json = false;
};

struct SnapshotOptions {
  StoreChoice store;
  std::string target;  // absent so far
  bool json = false;
};

// Errors: kInvalidArgument (no such block; nobody holds the store), kCapacity (too many pins).
Result<int> run_pin(const PinOptions& options, CommandContext& context);
Result<int> run_unpin(const UnpinOptions& options, CommandContext& context);
// Waits until what was committed is durable, then copies. Errors: as BlockCache::snapshot;
// kInvalidArgument where nobody holds the store.
Result<int> run_snapshot(const SnapshotOptions& options, CommandContext& context);

}  // namespace ember
