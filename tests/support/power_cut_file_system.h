// Power cut file system: a folder that remembers what was synced, and what a power cut may leave.
//
// Journey    RocksDB -> [power_cut_file_system] -> files of a scratch folder
// Owns       for each file below the root the bytes last synced and the writes since; for each
//            folder the names last synced and the changes since
// Invariant  after the cut nothing changes and nothing can be read; make_after_state leaves only
//            what the contract of fsync allows: what was synced, and of the rest any part
// Threads    any
// Not here   what is checked on the after-state (tests/store/disk/store_scan.h)
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace ember::testing {

// How the drive and the file system behave in the moment of the cut. Drawn by the seed.
enum class CutStyle : uint8_t {
  kNothing,    // only what was synced is there
  kAll,        // everything had reached the drive
  kOrdered,    // what was done before some moment, the write of that moment torn
  kTorn,       // each file and each folder apart: a prefix of what was done, torn at any byte
  kReordered,  // each sector and each name apart: some new, some old (zero, where nothing was)
};
inline constexpr uint64_t kCutStyles = 5;

struct PowerCutOptions {
  std::string root;      // its content counts as synced when the file system is made
  uint64_t cut_at = 0;   // the operation at which the power goes, counted from 1; 0: none
  // Planted faults: a sync of this path that reports success and does nothing.
  std::function<bool(const std::string& path, bool folder)> swallow_sync = nullptr;
};

// A file or folder of the model.
struct CutNode {
  struct Change {
    uint64_t order = 0;
    uint64_t offset = 0;  // of a write; of a truncation the new size
    std::string bytes;
    bool truncates = false;
  };
  struct NameChange {
    uint64_t order = 0;
    std::string removed;                    // empty: none
    std::string added;                      // empty: none
    std::shared_ptr<CutNode> target = nullptr;  // of `added`
  };
  using Names = std::map<std::string, std::shared_ptr<CutNode>>;

  bool folder = false;
  std::string synced;            // of a file
  std::vector<Change> changes;   // since, in order
  uint64_t size = 0;             // as a reader sees it now
  Names synced_names;            // of a folder
  Names names;                   // as a reader sees them now
  std::vector<NameChange> name_changes;
};

class PowerCutFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit PowerCutFileSystem(PowerCutOptions options);
  const char* Name() const override { return "EmberPowerCutFileSystem"; }

  // Writes, syncs and changes of names so far.
  uint64_t operations() const;
  bool is_cut() const;
  void cut();
  // Replaces the folder's content by one that the cut may have left. Only after the cut, when all
  // who use the file system are closed.
  void make_after_state(uint64_t seed);
  // The same in a style of choice.
  void make_after_state(uint64_t seed, CutStyle style);

  using Options = rocksdb::IOOptions;
  using Debug = rocksdb::IODebugContext;
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      Debug* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        Debug* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    Debug* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const Options& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* folder,
                                 Debug* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const Options& options,
                               Debug* debug) override;
  rocksdb::IOStatus CreateDir(const std::string& path, const Options& options,
                              Debug* debug) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const Options& options,
                                       Debug* debug) override;
  rocksdb::IOStatus DeleteDir(const std::string& path, const Options& options,
                              Debug* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const Options& options, Debug* debug) override;
  // Not modelled: nothing of a store may use them.
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions&,
                                       std::unique_ptr<rocksdb::FSWritableFile>*, Debug*) override {
    return rocksdb::IOStatus::NotSupported(path, "not modelled");
  }
  rocksdb::IOStatus LinkFile(const std::string& path, const std::string&, const Options&,
                             Debug*) override {
    return rocksdb::IOStatus::NotSupported(path, "not modelled");
  }
  rocksdb::IOStatus Truncate(const std::string& path, size_t, const Options&, Debug*) override {
    return rocksdb::IOStatus::NotSupported(path, "not modelled");
  }

 private:
  friend class CutWriter;
  friend class CutFolder;
  struct Place {
    std::shared_ptr<CutNode> folder;
    std::string name;
  };

  // Counts one operation. False: the power is off; `last`: it goes in the midst of this one.
  bool begin(bool* last) EMBER_REQUIRES(mutex_);
  Place place_of(const std::string& path) EMBER_REQUIRES(mutex_);
  void change_names(const std::shared_ptr<CutNode>& folder, CutNode::NameChange change)
      EMBER_REQUIRES(mutex_);
  rocksdb::IOStatus change(CutNode& node, CutNode::Change change,
                           const std::function<rocksdb::IOStatus()>& work) EMBER_EXCLUDES(mutex_);
  rocksdb::IOStatus sync(CutNode& node, const std::string& path) EMBER_EXCLUDES(mutex_);
  rocksdb::IOStatus off() const;

  PowerCutOptions options_;
  mutable Mutex mutex_;
  std::shared_ptr<CutNode> root_ EMBER_GUARDED_BY(mutex_);
  uint64_t operations_ EMBER_GUARDED_BY(mutex_) = 0;
  bool cut_ EMBER_GUARDED_BY(mutex_) = false;
};

// After a failed flush a thread of RocksDB's pools, which all databases of a process share, sleeps
// for a second: gives the pools so many.
void let_many_stores_wait(int threads);

}  // namespace ember::testing
