// RocksDB seam: what both of our databases need of RocksDB: a bounded folder, silence, health.
//
// Journey    none; disk_tier and conversations open their database through it
// Owns       the file system and Env of one database, and the last background error
// Invariant  the database writes nothing outside its folder, and no log of its own
// Threads    any
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "store/disk/limited_file_system.h"

namespace ember {

// The last background error, told by RocksDB's threads.
class HealthBoard final : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override;
  // RocksDB would look every five seconds whether a full drive has space again, and might wait for
  // ever when it finds some; it is opened anew instead.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason reason, rocksdb::Status error,
                            bool* auto_recovery) override;
  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override;

  void report(const rocksdb::Status& error);
  void clear();
  rocksdb::Status error() const;
  // Empty: all is well.
  std::string text() const;

 private:
  mutable Mutex mutex_;
  rocksdb::Status error_ EMBER_GUARDED_BY(mutex_);
};

// Opening anew costs; a drive that stays broken is not asked all the time.
class RecoveryPause {
 public:
  // False: the last attempt was less than half a second ago. Else one begins.
  bool begin(int64_t now_us) {
    if (now_us < next_us_) return false;
    next_us_ = now_us + kPauseUs;
    return true;
  }
  void succeeded() { next_us_ = 0; }

 private:
  static constexpr int64_t kPauseUs = 500'000;
  int64_t next_us_ = 0;
};

struct Seam {
  std::shared_ptr<LimitedFileSystem> files;
  std::unique_ptr<rocksdb::Env> env;
  std::shared_ptr<HealthBoard> health;
};

// A seam over `base` (null: the machine's file system).
Seam make_seam(const LimitedFileSystemOptions& options,
               const std::shared_ptr<rocksdb::FileSystem>& base);

// What both databases set alike: the seam's Env, no log, no statistics threads, direct I/O where
// the folder can do it, a small manifest.
rocksdb::DBOptions common_options(const Seam& seam, const LimitedFileSystemOptions& options);

// Flushes, and returns when nothing of the families is in memory alone. RocksDB's own Flush cannot
// be believed: after an error it may say "OK" of what is still to be written.
rocksdb::Status flush_families(rocksdb::DB& db,
                               const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                               const HealthBoard& health);

// True when the folder holds no data of an earlier database, so that one may be made in it. Without
// this a lost CURRENT would be answered with a new, empty database over the old one.
bool may_create_database(const std::string& directory);

// Removes files that a crash kept from their names, ours and RocksDB's, which never removes those
// of its options: each crash would leave one more. To be called before it opens for writing.
void remove_unfinished_files(LimitedFileSystem& files, const std::string& directory);

// Reads every file of the folder and asks RocksDB for the checksums of its tables; names of those
// that cannot be read or do not agree. Blob payloads are proven by whoever knows their checksums.
std::vector<std::string> unreadable_files(rocksdb::DB& db, const std::string& directory,
                                          const rocksdb::Options& table_options);

}  // namespace ember
