// RocksDB status: the one translation of a foreign status into ours, its own text kept.
//
// Journey    none; disk_tier and conversations report through it
// Invariant  no other file looks into a rocksdb::Status to choose an error code
// Threads    any; pure
#pragma once

#include <rocksdb/status.h>

#include <string_view>

#include "base/result.h"

namespace ember {

// `what` says what was being done to which path: "flush of /s/blocks". Misuse if status is ok.
Error rocksdb_error(const rocksdb::Status& status, std::string_view what);

// Success, or rocksdb_error.
Status rocksdb_result(const rocksdb::Status& status, std::string_view what);

}  // namespace ember
