// Durable file: write, sync, rename, sync the folder: in this order, through RocksDB's file system.
#include "store/disk/durable_file.h"

#include <fcntl.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "store/disk/private_file.h"
#include "store/disk/rocksdb_status.h"

namespace ember {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

rocksdb::FileSystem& below(const BaseFileSystem& base) {
  return base != nullptr ? *base : *rocksdb::FileSystem::Default();
}

// Private before the first byte: RocksDB would make it readable for all, as far as umask lets it.
IOStatus make_private(const std::string& path) {
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    return errno == ENOSPC || errno == EDQUOT ? IOStatus::NoSpace(path, std::strerror(errno))
                                              : IOStatus::IOError(path, std::strerror(errno));
  }
  ::fchmod(file, 0600);
  ::close(file);
  return IOStatus::OK();
}

IOStatus write_and_sync(rocksdb::FileSystem& files, const std::string& path,
                        std::string_view bytes) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = make_private(path);
  if (status.ok()) status = files.NewWritableFile(path, rocksdb::FileOptions(), &file, nullptr);
  if (status.ok()) status = file->Append(rocksdb::Slice(bytes), IOOptions(), nullptr);
  if (status.ok()) status = file->Fsync(IOOptions(), nullptr);
  if (file == nullptr) return status;
  IOStatus closed = file->Close(IOOptions(), nullptr);
  return status.ok() ? closed : status;
}

}  // namespace

std::string directory_of(const std::string& path) {
  std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  return whole.parent_path().string();
}

Status sync_directory(const BaseFileSystem& base, const std::string& directory) {
  std::unique_ptr<rocksdb::FSDirectory> opened;
  IOStatus status = below(base).NewDirectory(directory, IOOptions(), &opened, nullptr);
  if (status.ok()) status = opened->FsyncWithDirOptions(IOOptions(), nullptr, {});
  return rocksdb_result(status, directory + ": cannot be synced");
}

Status write_durable_file(const BaseFileSystem& base, const std::string& path,
                          std::string_view bytes) {
  std::string unfinished = path + ".tmp";
  IOStatus status = write_and_sync(below(base), unfinished, bytes);
  if (status.ok()) status = below(base).RenameFile(unfinished, path, IOOptions(), nullptr);
  if (!status.ok()) {
    static_cast<void>(below(base).DeleteFile(unfinished, IOOptions(), nullptr));
    return rocksdb_error(status, path + ": cannot be written");
  }
  return sync_directory(base, directory_of(path));
}

Status remove_durable_file(const BaseFileSystem& base, const std::string& path) {
  IOStatus status = below(base).DeleteFile(path, IOOptions(), nullptr);
  if (!status.ok() && !status.IsNotFound() && !status.IsPathNotFound()) {
    return rocksdb_error(status, path + ": cannot be removed");
  }
  return sync_directory(base, directory_of(path));
}

// The name is synced also where the folder was there: whoever made it may have been killed before.
// On the machine's own file system it is private from its first moment: a kill between making it
// and closing it to others would leave it open. What a umask took from its owner is given back.
Status make_private_directory(const BaseFileSystem& base, const std::string& directory) {
  rocksdb::FileSystem& files = below(base);
  if (base == nullptr) {
    const bool made = ::mkdir(directory.c_str(), 0700) == 0;
    if (!made && errno != EEXIST) return system_error(directory, "cannot be made", errno);
    if (made) ::chmod(directory.c_str(), 0700);
  } else if (!files.FileExists(directory, IOOptions(), nullptr).ok()) {
    IOStatus status = files.CreateDir(directory, IOOptions(), nullptr);
    if (!status.ok()) return rocksdb_error(status, directory + ": cannot be made");
    ::chmod(directory.c_str(), 0700);
  }
  return sync_directory(base, directory_of(directory));
}

}  // namespace ember
