// Limited file system: counts every byte that RocksDB writes, and says no in time.
#include "store/disk/limited_file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "store/disk/table_check.h"

namespace ember {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// RocksDB asks the logical block size (often 512); drives and file systems want whole pages, and
// buffers aligned to less made writes ten to twenty times slower.
constexpr size_t kAlignment = 4096;

std::string normal(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

bool is_rewritable(const std::string& path) {
  return path.ends_with(".sst") || path.ends_with(".log");
}

class AlignedReader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  using FSRandomAccessFileOwnerWrapper::FSRandomAccessFileOwnerWrapper;
  size_t GetRequiredBufferAlignment() const override { return kAlignment; }
};

class LimitedWriter final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  LimitedWriter(std::unique_ptr<rocksdb::FSWritableFile>&& target, std::string path, uint64_t size,
                std::shared_ptr<FileLedger> ledger)
      : FSWritableFileOwnerWrapper(std::move(target)),
        path_(std::move(path)),
        size_(size),
        ledger_(std::move(ledger)) {}

  size_t GetRequiredBufferAlignment() const override { return kAlignment; }

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = grow_to(size_ + data.size());
    if (!status.ok()) return status;
    return settle(FSWritableFileOwnerWrapper::Append(data, options, debug), size_ + data.size(),
                  data.size());
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* debug) override {
    IOStatus status = grow_to(size_ + data.size());
    if (!status.ok()) return status;
    return settle(FSWritableFileOwnerWrapper::Append(data, options, info, debug),
                  size_ + data.size(), data.size());
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* debug) override {
    IOStatus status = grow_to(offset + data.size());
    if (!status.ok()) return status;
    return settle(FSWritableFileOwnerWrapper::PositionedAppend(data, offset, options, debug),
                  offset + data.size(), data.size());
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& info,
                            IODebugContext* debug) override {
    IOStatus status = grow_to(offset + data.size());
    if (!status.ok()) return status;
    return settle(FSWritableFileOwnerWrapper::PositionedAppend(data, offset, options, info, debug),
                  offset + data.size(), data.size());
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = grow_to(size);
    if (!status.ok()) return status;
    status = FSWritableFileOwnerWrapper::Truncate(size, options, debug);
    if (status.ok()) {
      size_ = size;
      ledger_->set(path_, size);
    }
    return status;
  }
  // Space is taken as it is written: reserving it ahead would hide it from the ledger.
  IOStatus Allocate(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  void PrepareWrite(size_t, size_t, const IOOptions&, IODebugContext*) override {}
  void SetPreallocationBlockSize(size_t) override {}

 private:
  IOStatus grow_to(uint64_t size) {
    if (ledger_->grow(path_, size)) return IOStatus::OK();
    return IOStatus::NoSpace(path_ + ": the limit of " + std::to_string(ledger_->limit_bytes()) +
                             " bytes for its folder is reached");
  }
  IOStatus settle(IOStatus status, uint64_t size, uint64_t written) {
    if (status.ok()) {
      size_ = std::max(size_, size);
      ledger_->add_written(path_, written);
      return status;
    }
    // Some of it may have reached the file before the error.
    struct stat facts;
    if (::stat(path_.c_str(), &facts) == 0) {
      ledger_->set(path_, static_cast<uint64_t>(facts.st_size));
    }
    return status;
  }

  std::string path_;
  uint64_t size_;
  std::shared_ptr<FileLedger> ledger_;
};

// What another program, or an older version, left open to others.
void close_files_below(const std::string& root) {
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(root, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const bool file = it->symlink_status(gone).type() == std::filesystem::file_type::regular;
    if (file && !gone) ::chmod(it->path().c_str(), 0600);
  }
}

}  // namespace

void FileLedger::scan(const std::string& root) {
  MutexLock lock(mutex_);
  sizes_.clear();
  file_bytes_ = rewritable_bytes_ = 0;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(root, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    uint64_t size = it->file_size(gone);
    if (!gone) set_locked(normal(it->path().string()), size);
  }
}

bool FileLedger::grow(const std::string& path, uint64_t size) {
  MutexLock lock(mutex_);
  auto it = sizes_.find(path);
  uint64_t before = it == sizes_.end() ? 0 : it->second;
  if (size <= before) return true;
  if (file_bytes_ + (size - before) > limit_bytes_) return false;
  set_locked(path, size);
  return true;
}

void FileLedger::set(const std::string& path, uint64_t size) {
  MutexLock lock(mutex_);
  set_locked(path, size);
}

void FileLedger::set_locked(const std::string& path, uint64_t size) {
  uint64_t& entry = sizes_[path];
  file_bytes_ += size - entry;
  if (is_rewritable(path)) rewritable_bytes_ += size - entry;
  entry = size;
}

void FileLedger::remove_locked(const std::string& path) {
  auto it = sizes_.find(path);
  if (it == sizes_.end()) return;
  file_bytes_ -= it->second;
  if (is_rewritable(path)) rewritable_bytes_ -= it->second;
  sizes_.erase(it);
}

void FileLedger::remove(const std::string& path) {
  MutexLock lock(mutex_);
  remove_locked(path);
}

void FileLedger::rename(const std::string& from, const std::string& to) {
  MutexLock lock(mutex_);
  auto it = sizes_.find(from);
  uint64_t size = it == sizes_.end() ? 0 : it->second;
  remove_locked(from);
  set_locked(to, size);
}

void FileLedger::add_written(std::string_view path, uint64_t bytes) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  MutexLock lock(mutex_);
  if (name.ends_with(".blob")) {
    written_.blob_bytes += bytes;
  } else if (name.ends_with(".sst")) {
    written_.table_bytes += bytes;
  } else {
    written_.other_bytes += bytes;
  }
}

void FileLedger::set_limit_bytes(uint64_t bytes) {
  MutexLock lock(mutex_);
  limit_bytes_ = bytes;
}

uint64_t FileLedger::limit_bytes() const {
  MutexLock lock(mutex_);
  return limit_bytes_;
}

uint64_t FileLedger::file_bytes() const {
  MutexLock lock(mutex_);
  return file_bytes_;
}

uint64_t FileLedger::rewritable_bytes() const {
  MutexLock lock(mutex_);
  return rewritable_bytes_;
}

FileLedger::Written FileLedger::written() const {
  MutexLock lock(mutex_);
  return written_;
}

uint64_t FileLedger::size_of(const std::string& path) const {
  MutexLock lock(mutex_);
  auto it = sizes_.find(path);
  return it == sizes_.end() ? 0 : it->second;
}

uint64_t FileLedger::bytes_of(std::string_view extension) const {
  MutexLock lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [path, size] : sizes_) bytes += path.ends_with(extension) ? size : 0;
  return bytes;
}

LimitedFileSystem::LimitedFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base,
                                     const LimitedFileSystemOptions& options)
    : FileSystemWrapper(base),
      ledger_(std::make_shared<FileLedger>(options.limit_bytes)),
      read_only_(options.read_only) {
  ledger_->scan(options.root);
  if (!read_only_) close_files_below(options.root);
}

IOStatus LimitedFileSystem::refuse_if_read_only(const std::string& path) const {
  if (!read_only_) return IOStatus::OK();
  return IOStatus::IOError(path, "opened for reading only");
}

IOStatus LimitedFileSystem::wrap(const std::string& path, uint64_t size,
                                 std::unique_ptr<rocksdb::FSWritableFile>* file) {
  if (::chmod(path.c_str(), 0600) != 0) return IOStatus::IOError(path, std::strerror(errno));
  ledger_->set(normal(path), size);
  *file = std::make_unique<LimitedWriter>(std::move(*file), normal(path), size, ledger_);
  return IOStatus::OK();
}

// Through the page cache: a few hundred bytes at no boundary.
IOStatus LimitedFileSystem::check_opening_table(const std::string& path,
                                                rocksdb::FileOptions options, Debug* debug) {
  options.use_direct_reads = false;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  IOStatus status = FileSystemWrapper::NewRandomAccessFile(path, options, &file, debug);
  uint64_t size = 0;
  if (status.ok()) status = FileSystemWrapper::GetFileSize(path, IOOptions(), &size, debug);
  return status.ok() ? check_table(*file, size, path) : status;
}

IOStatus LimitedFileSystem::NewRandomAccessFile(const std::string& path,
                                                const rocksdb::FileOptions& options,
                                                std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                                Debug* debug) {
  if (path.ends_with(".sst")) {
    const IOStatus status = check_opening_table(path, options, debug);
    if (!status.ok()) return status;
  }
  IOStatus status = FileSystemWrapper::NewRandomAccessFile(path, options, file, debug);
  if (status.ok()) *file = std::make_unique<AlignedReader>(std::move(*file));
  return status;
}

IOStatus LimitedFileSystem::NewWritableFile(const std::string& path,
                                            const rocksdb::FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* file,
                                            Debug* debug) {
  IOStatus status = refuse_if_read_only(path);
  if (!status.ok()) return status;
  // RocksDB would make it 0644 at first; one that is there keeps its mode.
  const int born = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (born >= 0) ::close(born);
  status = FileSystemWrapper::NewWritableFile(path, options, file, debug);
  if (!status.ok() && born >= 0) ::unlink(path.c_str());
  return status.ok() ? wrap(path, 0, file) : status;
}

IOStatus LimitedFileSystem::ReopenWritableFile(const std::string& path,
                                               const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSWritableFile>* file,
                                               Debug* debug) {
  IOStatus status = refuse_if_read_only(path);
  if (status.ok()) status = FileSystemWrapper::ReopenWritableFile(path, options, file, debug);
  return status.ok() ? wrap(path, ledger_->size_of(normal(path)), file) : status;
}

// A reused file keeps its old bytes until they are written over: simpler to begin anew.
IOStatus LimitedFileSystem::ReuseWritableFile(const std::string& path, const std::string& old_path,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                                              Debug* debug) {
  IOStatus status = DeleteFile(old_path, IOOptions(), debug);
  return status.ok() ? NewWritableFile(path, options, file, debug) : status;
}

// Written by no feature of RocksDB that a store uses, and not countable by appends.
IOStatus LimitedFileSystem::NewRandomRWFile(const std::string& path, const rocksdb::FileOptions&,
                                            std::unique_ptr<rocksdb::FSRandomRWFile>*, Debug*) {
  return IOStatus::NotSupported(path, "random writes are not counted");
}

IOStatus LimitedFileSystem::NewMemoryMappedFileBuffer(
    const std::string& path, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>*) {
  return IOStatus::NotSupported(path, "mapped writes are not counted");
}

IOStatus LimitedFileSystem::Truncate(const std::string& path, size_t, const IOOptions&, Debug*) {
  return IOStatus::NotSupported(path, "cutting a file that is not open is not counted");
}

IOStatus LimitedFileSystem::DeleteFile(const std::string& path, const IOOptions& options,
                                       Debug* debug) {
  IOStatus status = refuse_if_read_only(path);
  if (status.ok()) status = FileSystemWrapper::DeleteFile(path, options, debug);
  if (status.ok()) ledger_->remove(normal(path));
  return status;
}

IOStatus LimitedFileSystem::sync_folder(const std::string& path, const IOOptions& options,
                                        Debug* debug) {
  std::unique_ptr<rocksdb::FSDirectory> folder;
  IOStatus status = FileSystemWrapper::NewDirectory(path, options, &folder, debug);
  if (status.ok()) status = folder->Fsync(options, debug);
  if (status.ok()) status = folder->Close(options, debug);
  return status;
}

IOStatus LimitedFileSystem::RenameFile(const std::string& from, const std::string& to,
                                       const IOOptions& options, Debug* debug) {
  IOStatus status = refuse_if_read_only(from);
  // What CURRENT will name, and what that names, must be in the folder for good before: RocksDB
  // syncs the folder after the renaming only, and a drive may keep one change and not the other.
  const std::filesystem::path target(to);
  if (status.ok() && target.filename() == "CURRENT") {
    status = sync_folder(target.parent_path().string(), options, debug);
  }
  if (status.ok()) status = FileSystemWrapper::RenameFile(from, to, options, debug);
  if (status.ok()) ledger_->rename(normal(from), normal(to));
  return status;
}

IOStatus LimitedFileSystem::LinkFile(const std::string& from, const std::string& to,
                                     const IOOptions&, Debug*) {
  return IOStatus::NotSupported(from, "a second name " + to + " would be counted twice");
}

IOStatus LimitedFileSystem::CreateDir(const std::string& path, const IOOptions& options,
                                      Debug* debug) {
  IOStatus status = refuse_if_read_only(path);
  if (!status.ok()) return status;
  // RocksDB would make it 0755 at first, and a kill might leave it so.
  const bool born = ::mkdir(path.c_str(), 0700) == 0;
  status = born ? FileSystemWrapper::CreateDirIfMissing(path, options, debug)
                : FileSystemWrapper::CreateDir(path, options, debug);
  if (!status.ok() && born) ::rmdir(path.c_str());
  return status;
}

IOStatus LimitedFileSystem::CreateDirIfMissing(const std::string& path, const IOOptions& options,
                                               Debug* debug) {
  if (FileExists(path, options, debug).ok()) return IOStatus::OK();
  return CreateDir(path, options, debug);
}

IOStatus LimitedFileSystem::DeleteDir(const std::string& path, const IOOptions& options,
                                      Debug* debug) {
  IOStatus status = refuse_if_read_only(path);
  return status.ok() ? FileSystemWrapper::DeleteDir(path, options, debug) : status;
}

IOStatus LimitedFileSystem::LockFile(const std::string& path, const IOOptions& options,
                                     rocksdb::FileLock** lock, Debug* debug) {
  IOStatus status = refuse_if_read_only(path);
  if (status.ok()) status = FileSystemWrapper::LockFile(path, options, lock, debug);
  if (status.ok()) ::chmod(path.c_str(), 0600);
  return status;
}

IOStatus LimitedFileSystem::GetFreeSpace(const std::string& path, const IOOptions& options,
                                         uint64_t* free_bytes, Debug* debug) {
  IOStatus status = FileSystemWrapper::GetFreeSpace(path, options, free_bytes, debug);
  if (!status.ok()) return status;
  uint64_t limit = ledger_->limit_bytes();
  uint64_t used = ledger_->file_bytes();
  *free_bytes = std::min(*free_bytes, limit > used ? limit - used : 0);
  return status;
}

bool direct_io_works(const std::string& directory) {
  // An unnamed file: nothing is left behind, even by a kill.
  int file = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
  if (file < 0) return false;
  void* page = std::aligned_alloc(kAlignment, kAlignment);
  bool works = page != nullptr;
  if (works) {
    std::memset(page, 0, kAlignment);
    auto size = static_cast<ssize_t>(kAlignment);
    works = ::pwrite(file, page, kAlignment, 0) == size;
    works = works && ::pread(file, page, kAlignment, 0) == size;
  }
  std::free(page);
  ::close(file);
  return works;
}

}  // namespace ember
