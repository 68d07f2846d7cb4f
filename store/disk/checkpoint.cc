// Linking and copying the live files of a database while it runs.
#include "store/disk/checkpoint.h"

#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <shared_mutex>
#include <vector>

#include "store/disk/disk_tier_impl.h"
#include "store/disk/durable_file.h"
#include "store/disk/rocksdb_status.h"

namespace ember {
namespace {

constexpr size_t kChunkBytes = 1u << 20;

Error system_error(const std::string& path, const char* what) {
  const ErrorCode code = errno == ENOSPC || errno == EDQUOT ? ErrorCode::kCapacity : ErrorCode::kIo;
  return {code, path + ": " + what + ": " + std::strerror(errno)};
}

Status write_all(int file, const char* bytes, size_t size, const std::string& path) {
  while (size > 0) {
    const ssize_t written = ::write(file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(path, "cannot be written");
    bytes += written;
    size -= static_cast<size_t>(written);
  }
  return {};
}

Status copy_bytes(int from, int to, uint64_t size, const std::string& path) {
  std::vector<char> chunk(kChunkBytes);
  while (size > 0) {
    const ssize_t got = ::read(from, chunk.data(), std::min<uint64_t>(chunk.size(), size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, "cannot be read for its copy");
    if (got == 0) return {ErrorCode::kIo, path + ": shorter than RocksDB says"};
    EMBER_TRY(write_all(to, chunk.data(), static_cast<size_t>(got), path));
    size -= static_cast<uint64_t>(got);
  }
  if (::fsync(to) != 0) return system_error(path, "cannot be synced");
  return {};
}

// The first `size` bytes: a manifest or a log may grow while it is copied.
Status copy_file(const std::string& from, const std::string& to, uint64_t size) {
  const int in = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0) return system_error(from, "cannot be opened");
  const int out = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  Status status = out < 0 ? system_error(to, "cannot be made") : copy_bytes(in, out, size, to);
  if (out >= 0) ::close(out);
  ::close(in);
  return status;
}

Status place_file(const rocksdb::LiveFileStorageInfo& file, const std::string& target) {
  const std::string from = file.directory + "/" + file.relative_filename;
  const std::string to = target + "/" + file.relative_filename;
  if (!file.replacement_contents.empty()) {
    return write_durable_file(nullptr, to, file.replacement_contents);
  }
  // What is still written to may not be shared with the copy.
  if (!file.trim_to_size && ::link(from.c_str(), to.c_str()) == 0) return {};
  return copy_file(from, to, file.size);
}

}  // namespace

Status checkpoint_database(rocksdb::DB& db, const std::string& target) {
  EMBER_TRY(make_private_directory(nullptr, target));
  rocksdb::Status held = db.DisableFileDeletions();
  if (!held.ok()) return rocksdb_error(held, target + ": snapshot");
  std::vector<rocksdb::LiveFileStorageInfo> files;
  rocksdb::LiveFilesStorageInfoOptions options;
  options.wal_size_for_flush = 0;  // always: what was accepted is in the tables
  const rocksdb::Status listed = db.GetLiveFilesStorageInfo(options, &files);
  Status status = listed.ok() ? Status{} : rocksdb_error(listed, target + ": snapshot");
  for (const rocksdb::LiveFileStorageInfo& file : files) {
    if (status.ok()) status = place_file(file, target);
  }
  held = db.EnableFileDeletions(false);
  if (status.ok() && !held.ok()) status = rocksdb_error(held, target + ": snapshot");
  if (status.ok()) status = sync_directory(nullptr, target);
  return status;
}

Status DiskTierImpl::checkpoint(const std::string& target) {
  std::shared_lock hold(db_mutex_);
  if (db_ == nullptr) return {ErrorCode::kIo, doing("closed: " + seam_.health->text())};
  return checkpoint_database(*db_, target);
}

}  // namespace ember
