// Durable file: small files and folders of ours, beside RocksDB's own, made so that a power cut
// leaves them whole or absent.
//
// Journey    store_directory, quarantine, tables -> [durable_file] -> files
// Invariant  what a call reported as done is there after a power cut: bytes are synced before the
//            name, the name before the return; files are 0600, folders 0700
// Threads    any; two calls for one path at a time are the caller's business
// Not here   the databases' files (RocksDB syncs those), limits (limited_file_system.h)
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rocksdb {
class FileSystem;
}

namespace ember {

// The file system that a part of the store is opened on; null: the machine's.
using BaseFileSystem = std::shared_ptr<rocksdb::FileSystem>;

// Writes the file anew: after a crash there are the old bytes or the new ones, nothing between.
// Errors: kIo, kCapacity, naming the path.
Status write_durable_file(const BaseFileSystem& base, const std::string& path,
                          std::string_view bytes);
// Removes the file, if it is there, for good.
Status remove_durable_file(const BaseFileSystem& base, const std::string& path);
// Makes the folder if absent, and its name durable in either case.
Status make_private_directory(const BaseFileSystem& base, const std::string& directory);
// Makes durable which names the folder holds.
Status sync_directory(const BaseFileSystem& base, const std::string& directory);
// The folder that holds this name, also for relative paths and those that end in a slash.
std::string directory_of(const std::string& path);

}  // namespace ember
