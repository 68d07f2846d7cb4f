// Database files: which files of a RocksDB folder are not what was written, found without opening
// the database.
//
// Journey    none; a repair asks
// Invariant  reading only
// Threads    any
// Not here   what an open database knows to be missing (store/disk/rocksdb_seam.h)
#pragma once

#include <string>
#include <vector>

namespace ember {

// Names of tables that cannot be read or whose checksums do not agree, of logs and of the current
// manifest where a record is damaged, and CURRENT where it names no manifest that is there.
std::vector<std::string> broken_files(const std::string& folder);

}  // namespace ember
