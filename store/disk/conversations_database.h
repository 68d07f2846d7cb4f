// Conversations' database: a small RocksDB with a write-ahead log, held to its limit of bytes, and
// opened anew after it has given up.
//
// Journey    none; conversations stand on it
// Owns       the open RocksDB in <store>/conversations and its column families `turns` and `tails`
// Invariant  a write that was reported done with `sync` survives a crash and an opening anew; all
//            files stay within limit_bytes, except where opening what is there takes more
// Threads    any; whoever uses the database shares it, opening anew has it alone
// Not here   what the rows say (conversations_format.h)
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/conversations.h"
#include "store/disk/open_parts.h"
#include "store/disk/rocksdb_seam.h"

namespace ember {

class ConversationsDatabase {
 public:
  ConversationsDatabase(const ConversationsOptions& options, const BaseFileSystem& base);
  ~ConversationsDatabase() { close(); }

  // Errors: kCorruption, kIo where RocksDB cannot open it (its own text included).
  Status open();

  // The open database, which stays open for as long as this lives. One in a thread at a time.
  struct Use {
    std::shared_lock<std::shared_mutex> hold;
    rocksdb::DB* db = nullptr;
    rocksdb::ColumnFamilyHandle* turns = nullptr;
    rocksdb::ColumnFamilyHandle* tails = nullptr;
  };
  // Errors: kIo while it could not be opened anew.
  Result<Use> use();

  // Whether `more_bytes` of values fit; compacts first where that may help. Errors: kCapacity, kIo.
  Status make_room(uint64_t more_bytes);
  // `fill` says what is written.
  using Fill = std::function<Status(rocksdb::WriteBatch& batch, const Use& use)>;
  Status write(bool sync, const Fill& fill);
  // Then no file holds a byte of what was erased.
  Status purge();
  // Empties `tails`, where a table of theirs cannot be read.
  Status renew_tails();

  Status check_writable();
  uint64_t file_bytes() const { return seam_.files->ledger().file_bytes(); }
  Result<std::vector<std::string>> unreadable();
  std::string doing(const std::string& what) const { return options_.directory + ": " + what; }

 private:
  rocksdb::DBOptions database_options(bool read_only) const;
  Status open_database(bool read_only);
  Status open_for_writing_or_reading();
  Status reopen();
  void close();
  bool fits(uint64_t more_bytes) const;
  Status compact(const Use& use);

  ConversationsOptions options_;
  LimitedFileSystemOptions files_;
  Seam seam_;

  mutable std::shared_mutex mutex_;  // exclusive: opening anew, and whatever changes the handles
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::string read_only_reason_;
  RecoveryPause recovery_;
  std::atomic<bool> reading_only_ = false;  // because it could not be opened for writing
  std::atomic<bool> compactable_ = true;    // something was erased or written over
};

}  // namespace ember
