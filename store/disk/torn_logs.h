// Torn logs: cuts off what a power cut left of a write that nobody was told was done.
//
// Journey    conversations, disk_tier -> [torn_logs] -> files, before RocksDB opens them
// Invariant  a file is rewritten whole or not at all, and only behind its last synced write; a
//            damaged one is left as it is
// Threads    open once
// Not here   how torn is told from damaged (rocksdb_log_check.h)
#pragma once

#include <string>

#include "store/disk/durable_file.h"

namespace ember {

// Looks at the current manifest and at each log of the folder; mends those that are torn where
// `may_write`. Errors: kCorruption naming the first damaged file; kIo, kCapacity.
Status mend_torn_logs(const BaseFileSystem& files, const std::string& directory, bool may_write);

}  // namespace ember
