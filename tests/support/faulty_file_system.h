// Faulty file system: the machine's, with a hook before each act and behind each read.
//
// Journey    RocksDB -> [faulty_file_system] -> files
// Invariant  without hooks it changes nothing; an act that the hook refuses does not happen
// Threads    any: hooks are called by RocksDB's threads too
// Not here   what a power cut leaves (power_cut_file_system.h)
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ember::testing {

enum class FileAct : uint8_t { kRead, kWrite, kSync, kCreate, kRename, kDelete, kFolderSync };
inline constexpr uint64_t kFileActs = 7;

struct FaultHooks {
  // Not OK: the act fails so.
  std::function<rocksdb::IOStatus(FileAct, const std::string& path)> before = nullptr;
  // May change bytes that were read, or make them fewer.
  std::function<void(const std::string& path, uint64_t offset, std::string& bytes)> after_read =
      nullptr;
};

// `hooks` may be changed only while nobody uses the file system.
std::shared_ptr<rocksdb::FileSystem> make_faulty_file_system(FaultHooks hooks);

}  // namespace ember::testing
