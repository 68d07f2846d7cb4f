// Table blocks: the rows of a RocksDB table, block by block, without its index or footer: for a
// table that RocksDB refuses to open, or in which some blocks are damaged.
//
// Journey    none; a repair reads what is left of a database through it
// Invariant  a row is shown only if its block's checksum agrees; a damaged block hides its own rows
//            and no other
// Threads    any; reads only
// Source     RocksDB wiki, "Rocksdb BlockBasedTable Format"; our tables are not compressed
//
//   data block    entries, then the offsets of some of them (4 bytes each, the first is 0), their
//                 number (4), then the trailer: compression 1 (0: none), checksum 4
//   entry         bytes shared with the last key, further bytes of the key, bytes of the value (a
//                 varint each); those bytes of the key; the value
//   key           the row's key, then 8 bytes: sequence number * 256 + kind
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ember {

struct TableRow {
  std::string_view key;
  std::string_view value;
  uint64_t sequence = 0;
  bool erased = false;  // the row says that there is none
};

struct TableScan {
  uint64_t blocks = 0;  // proven
  uint64_t rows = 0;
};

// Rows whose value lies elsewhere (in a blob file), and erasures of ranges, are not shown.
using TableRowVisitor = std::function<void(const TableRow&)>;
TableScan scan_table_blocks(std::string_view table, const TableRowVisitor& visit);

// The bytes of a whole file; what the drive does not give is zeros. Errors: kIo where it cannot be
// opened.
Result<std::string> read_as_far_as_possible(const std::string& path);

}  // namespace ember
