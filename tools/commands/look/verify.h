// verify: reads and proves every byte that a store would ever give back.
//
// Journey    disk_tier, conversations -> [verify] -> a verdict
// Invariant  reads only; a block counts as damaged once, however much of it is
// Threads    the command's
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/quarantine.h"
#include "tools/commands/command_context.h"
#include "tools/commands/look/block_filter.h"

namespace ember {

struct VerifyOptions {
  StoreChoice store;
  std::string prefix;   // first digits of a block's hash: it and what hangs under it; empty: all
  uint64_t sample = 0;  // so many blocks, drawn at random; 0: all
  uint64_t seed = 0;    // of the draw; 0: another one each time
  uint64_t bytes_per_second = 0;  // most raw bytes proven; 0: no limit
  bool json = false;
};

struct VerifyReport {
  bool whole = true;           // all of the store: not a sample nor a prefix
  uint64_t blocks = 0;         // block and tail records read
  uint64_t tails = 0;          // of these
  uint64_t groups = 0;         // layer groups read, decoded and compared with their checksums
  uint64_t raw_bytes = 0;      // that were proven
  uint64_t holes = 0;          // records that gave up their groups, for the sake of what is below
  uint64_t passed_over = 0;    // changed or went while they were read, beside a running process
  uint64_t conversations = 0;  // loaded whole
  uint64_t damaged = 0;        // records, blocks and conversations that are not what was written
  uint64_t unreachable = 0;    // whole, but their parent is not there: lost in a crash, no damage
  std::vector<QuarantineRow> quarantined;  // found wrong in the past and kept aside; no damage now
  std::vector<std::string> unreadable_files;
  std::vector<std::string> details;  // one line for each damage
  std::string reason;                // why the store cannot be opened; empty when it can
  bool good() const { return damaged == 0 && unreadable_files.empty() && reason.empty(); }
};

// Exit code 1 when anything is damaged or the store cannot be opened.
Result<int> run_verify(const VerifyOptions& options, CommandContext& context);

}  // namespace ember
