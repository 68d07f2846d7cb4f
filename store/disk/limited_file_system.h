// Limited file system: RocksDB's view of a folder that never grows past a number of bytes.
//
// Journey    disk_tier, conversations -> [limited_file_system] -> files
// Owns       the ledger of file sizes below one root folder
// Invariant  an append that would pass the limit is refused before a byte is written; a read-only
//            file system changes nothing; files are 0600, folders 0700
// Threads    any
// Not here   what to give up when it is full (disk_tier's make_room)
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace ember {

// Sizes of the files below a root, and their sum against a limit.
class FileLedger {
 public:
  explicit FileLedger(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Takes over the files that lie below `root` now.
  void scan(const std::string& root);
  // Raises the file's size to `size`, unless the sum would pass the limit.
  bool grow(const std::string& path, uint64_t size);
  void set(const std::string& path, uint64_t size);
  void remove(const std::string& path);
  void rename(const std::string& from, const std::string& to);
  void add_written(std::string_view path, uint64_t bytes);

  void set_limit_bytes(uint64_t bytes);
  uint64_t limit_bytes() const;
  uint64_t file_bytes() const;
  // Of tables and logs: what flushing or compacting may write a second time before it deletes the
  // first.
  uint64_t rewritable_bytes() const;
  // By kind of file, since this ledger was made.
  struct Written {
    uint64_t blob_bytes = 0;
    uint64_t table_bytes = 0;
    uint64_t other_bytes = 0;  // manifests, logs, options
    uint64_t bytes() const { return blob_bytes + table_bytes + other_bytes; }
  };
  Written written() const;
  uint64_t size_of(const std::string& path) const;
  uint64_t bytes_of(std::string_view extension) const;  // Cost: linear in the files

 private:
  void set_locked(const std::string& path, uint64_t size) EMBER_REQUIRES(mutex_);
  void remove_locked(const std::string& path) EMBER_REQUIRES(mutex_);

  mutable Mutex mutex_;
  uint64_t limit_bytes_ EMBER_GUARDED_BY(mutex_);
  uint64_t file_bytes_ EMBER_GUARDED_BY(mutex_) = 0;
  uint64_t rewritable_bytes_ EMBER_GUARDED_BY(mutex_) = 0;
  Written written_ EMBER_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> sizes_ EMBER_GUARDED_BY(mutex_);
};

struct LimitedFileSystemOptions {
  std::string root;
  uint64_t limit_bytes = 0;
  bool read_only = false;
};

class LimitedFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  LimitedFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base,
                    const LimitedFileSystemOptions& options);
  const char* Name() const override { return "EmberLimitedFileSystem"; }

  FileLedger& ledger() { return *ledger_; }

  using IOOptions = rocksdb::IOOptions;
  using Debug = rocksdb::IODebugContext;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        Debug* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    Debug* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       Debug* debug) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      Debug* debug) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    Debug* debug) override;
  rocksdb::IOStatus NewMemoryMappedFileBuffer(
      const std::string& path, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>* buffer) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                               Debug* debug) override;
  rocksdb::IOStatus Truncate(const std::string& path, size_t size, const IOOptions& options,
                             Debug* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const IOOptions& options, Debug* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to,
                             const IOOptions& options, Debug* debug) override;
  rocksdb::IOStatus CreateDir(const std::string& path, const IOOptions& options,
                              Debug* debug) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& options,
                                       Debug* debug) override;
  rocksdb::IOStatus DeleteDir(const std::string& path, const IOOptions& options,
                              Debug* debug) override;
  rocksdb::IOStatus LockFile(const std::string& path, const IOOptions& options,
                             rocksdb::FileLock** lock, Debug* debug) override;
  // The free space below the limit, so that RocksDB's own recovery waits for the right thing.
  rocksdb::IOStatus GetFreeSpace(const std::string& path, const IOOptions& options,
                                 uint64_t* free_bytes, Debug* debug) override;

 private:
  rocksdb::IOStatus refuse_if_read_only(const std::string& path) const;
  rocksdb::IOStatus check_opening_table(const std::string& path, rocksdb::FileOptions options,
                                        rocksdb::IODebugContext* debug);
  rocksdb::IOStatus sync_folder(const std::string& path, const IOOptions& options,
                                rocksdb::IODebugContext* debug);
  rocksdb::IOStatus wrap(const std::string& path, uint64_t size,
                         std::unique_ptr<rocksdb::FSWritableFile>* file);

  std::shared_ptr<FileLedger> ledger_;
  bool read_only_;
};

// Whether files below `directory` can be written and read past the page cache. Leaves nothing.
bool direct_io_works(const std::string& directory);

}  // namespace ember
