// Table check: the one thing in a table that RocksDB acts on before it proves it.
//
// Journey    none; limited_file_system asks as RocksDB opens a table
// Invariant  a table that RocksDB wrote passes; one that it would abort on does not; all else that
//            is wrong with a table RocksDB finds itself
// Threads    any; reads only
// Source     RocksDB wiki, "Rocksdb BlockBasedTable Format"; table/meta_blocks.cc of 7.8
//
// RocksDB decodes a table's properties block first and compares its checksum afterwards. If the
// last bit of that block is flipped, it says that the block ends with a hash index, and RocksDB
// aborts on the index that is not there.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <string>

namespace ember {

// Errors: Corruption; those of reading.
rocksdb::IOStatus check_table(rocksdb::FSRandomAccessFile& file, uint64_t size,
                              const std::string& path);

}  // namespace ember
