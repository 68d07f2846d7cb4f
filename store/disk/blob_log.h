// Blob log: the values of one of RocksDB's blob files with their keys, read without the database
// that names them.
//
// Journey    none; a repair finds the groups of blocks through it
// Invariant  what is shown was written as one value of one key, or its header's checksum lies; what
//            the value says is for the reader to prove
// Threads    any; reads only
// Source     RocksDB wiki, "BlobDB"; db/blob/blob_log_format.h of 7.8
//
//   header 30 bytes, then for each value: bytes of the key 8, of the value 8, expiration 8,
//   checksum of these 4, of key and value 4, key, value; then a footer of 32 bytes
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace ember {

struct BlobValue {
  std::string_view key;
  std::string_view value;
};

// In the order of the file; damaged headers are passed over. Returns how many bytes belong to no
// value that was found: none in a file that is whole.
uint64_t scan_blob_log(std::string_view file, const std::function<void(const BlobValue&)>& visit);

}  // namespace ember
