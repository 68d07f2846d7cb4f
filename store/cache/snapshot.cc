// Checkpoints of both databases and the store's own small files, then the name.
#include "store/cache/snapshot.h"

#include <filesystem>
#include <system_error>

#include "store/disk/durable_file.h"
#include "store/disk/private_file.h"
#include "store/disk/vault_format.h"

namespace ember {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kLargestOwnFile = kMostKeysBytes;

Status check_target(const std::string& store, const std::string& target) {
  std::error_code error;
  for (const std::string& path : {target, target + ".unfinished"}) {
    if (fs::symlink_status(path, error).type() == fs::file_type::not_found) continue;
    return {ErrorCode::kInvalidArgument,
            path + ": is there already" +
                (path == target ? "" : ", left by a snapshot that was cut short: remove it")};
  }
  const fs::path inner =
      fs::weakly_canonical(target, error).lexically_relative(fs::weakly_canonical(store, error));
  if (!inner.empty() && *inner.begin() != "..") {
    return {ErrorCode::kInvalidArgument, target + ": a snapshot cannot lie within its store"};
  }
  return {};
}

// IDENTITY, KEYS and whatever else says what the store is; not the lock, which is the holder's.
// After the databases: KEYS has the key of every value in them.
Status copy_own_files(const std::string& store, const std::string& target) {
  std::error_code error;
  for (fs::directory_iterator it(store, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code gone;
    const bool ours = it->is_regular_file(gone) && name != "LOCK" && !name.ends_with(".tmp");
    if (!ours || it->file_size(gone) > kLargestOwnFile) continue;
    EMBER_ASSIGN(const std::string bytes, read_small_file(it->path().string(), kLargestOwnFile));
    EMBER_TRY(write_durable_file(nullptr, target + "/" + name, bytes));
  }
  if (error) return {ErrorCode::kIo, store + ": cannot be listed: " + error.message()};
  return {};
}

// The notes, and each tokenizer's folder.
Status copy_namespaces(const std::string& from, const std::string& to) {
  std::error_code error;
  if (!fs::exists(from, error)) return {};
  EMBER_TRY(make_private_directory(nullptr, to));
  EMBER_TRY(copy_own_files(from, to));
  for (fs::directory_iterator it(from, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code gone;
    if (!it->is_directory(gone) || name.ends_with(".unfinished")) continue;
    EMBER_TRY(make_private_directory(nullptr, to + "/" + name));
    EMBER_TRY(copy_own_files(it->path().string(), to + "/" + name));
    EMBER_TRY(sync_directory(nullptr, to + "/" + name));
  }
  return sync_directory(nullptr, to);
}

Status fill(const std::string& store, const std::string& folder, DiskTier& disk,
            Conversations* conversations) {
  EMBER_TRY(make_private_directory(nullptr, folder));
  EMBER_TRY(disk.checkpoint(folder + "/blocks"));
  if (conversations != nullptr) {
    EMBER_TRY(conversations->checkpoint(folder + "/conversations"));
  }
  EMBER_TRY(copy_own_files(store, folder));
  EMBER_TRY(copy_namespaces(store + "/namespaces", folder + "/namespaces"));
  return sync_directory(nullptr, folder);
}

}  // namespace

Status take_snapshot(const std::string& store, const std::string& folder, DiskTier& disk,
                     Conversations* conversations) {
  // A name that ends with a slash is that of the same folder.
  const size_t end = folder.find_last_not_of('/');
  const std::string target = end == std::string::npos ? folder : folder.substr(0, end + 1);
  EMBER_TRY(check_target(store, target));
  const std::string unfinished = target + ".unfinished";
  const Status filled = fill(store, unfinished, disk, conversations);
  std::error_code error;
  if (filled.ok()) fs::rename(unfinished, target, error);
  if (!filled.ok() || error) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    if (!filled.ok()) return filled;
    return {ErrorCode::kIo, target + ": cannot be named: " + error.message()};
  }
  return sync_directory(nullptr, directory_of(target));
}

}  // namespace ember
