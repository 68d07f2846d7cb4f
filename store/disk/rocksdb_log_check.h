// RocksDB log check: whether a log or manifest file is whole, or cut at its end, or changed inside.
//
// Journey    none; conversations ask before they open, `verify` asks of manifests
// Invariant  a file whose end was torn by a crash is whole; one with any other changed byte is not
// Threads    any; reads only
// Source     RocksDB wiki, "Write Ahead Log File Format": blocks of 32 KiB of records
//            {masked crc32c 4, length 2, type 1, payload}
//
// RocksDB itself takes a record whose length reaches past the end of the file for one that a crash
// cut short, and drops it in silence. A flipped byte of that length looks the same to it. Here such
// a record is searched for what a real cut cannot leave: a right checksum further on.
#pragma once

#include <string>
#include <string_view>

namespace ember {

bool log_file_is_whole(const std::string& path);

// The same for bytes in memory.
bool log_is_whole(std::string_view bytes);

}  // namespace ember
