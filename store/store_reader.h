// Store reader: a store as one looks at it: its blocks, tails, conversations and health, whoever
// holds it.
//
// Journey    disk_tier, conversations, quarantine (and a holder's block_cache) -> [store_reader] ->
//            stat, ls, tree, show, du, verify, explain, export
// Owns       how a store is walked: in pages, so that memory does not grow with its blocks
// Invariant  reading changes nothing: of a store at rest not one byte is written
// Threads    any, one caller at a time for each reader
// Not here   changes (store/store_editor.h), what a command prints (tools/commands)
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "prefix_index/journey.h"
#include "store/block_cache.h"
#include "store/conversations.h"
#include "store/disk_tier.h"
#include "store/encryption.h"
#include "store/namespace_book.h"
#include "store/quarantine.h"
#include "store/record.h"
#include "store/store_directory.h"

namespace ember {

// What a holder knows of a block beyond its record. At rest: on disk, nothing else.
struct BlockPlace {
  std::array<bool, kTierCount> in{};
  uint32_t leases = 0;               // running requests that use it
  int64_t pinned_until_unix_us = 0;  // 0: not pinned
  bool durable = true;               // survives a crash
  bool damaged = false;              // a hole: its bytes were proven wrong
};

// A block or tail on a walk. What it points to lasts for the call.
struct BlockSight {
  const BlockRecord& record;
  const TouchRecord& touch;
  const BlockPlace& place;
};

struct StoreFacts {
  std::string path;
  uint32_t version = 0;
  bool encrypted = false;
  // The process that holds the store, if it is another one: then what is read is as of
  // `as_of_unix_us`, its last flush.
  int holder_pid = 0;
  int64_t as_of_unix_us = 0;
  bool live = false;   // read through its holder: nothing is older than the call
  std::string health;  // "ok", or what does not work, in one line
};

// With what a store was last held, as its holder wrote it down.
struct StoreLimits {
  uint64_t blocks_bytes = 0;  // the share of --disk-bytes that blocks have (store/disk_plan.h)
  uint64_t full_blocks = 0;   // that it held when it was full; 0: it never was
  EvictionPolicy eviction = EvictionPolicy::kAuto;
};

class StoreReader {
 public:
  virtual ~StoreReader() = default;

  virtual StoreFacts facts() = 0;
  virtual const HashSecret& secret() const = 0;

  // Shows every block, then every tail, in no order. Stops early where `visit` returns false.
  // A block that comes, goes or moves to the disk meanwhile may be shown or not. Memory: one page,
  // and all tails.
  struct Walked {
    uint64_t blocks = 0;
    uint64_t tails = 0;
    uint64_t unreadable = 0;  // records that are damaged
    uint64_t forgotten = 0;   // sealed, and the key of their scope is destroyed
  };
  using Visitor = std::function<bool(const BlockSight&)>;
  virtual Result<Walked> walk(const Visitor& visit) = 0;

  // The record of a block as it is now, of a tail as the last walk found it; nothing if there is
  // none.
  // Errors: kCorruption, kIo.
  virtual Result<std::optional<BlockRecord>> record(const BlockHash& hash) = 0;
  // Reads, decodes and proves one group (DiskTier::read_group); of a block that no disk has yet,
  // from where it is. Errors: kCorruption, kIo.
  virtual Status read_group(const BlockRecord& record, uint32_t group, Bytes raw) = 0;

  // Empty where nothing was written down. Errors: kIo, kCorruption.
  virtual Result<NamespaceNote> name_space(const NamespaceHash& name_space) = 0;

  virtual Conversations& conversations() = 0;
  virtual std::vector<QuarantineRow> quarantined() = 0;
  virtual QuarantineStats quarantine_stats() = 0;
  virtual DiskTierStats disk_stats() = 0;
  // From the oldest on (DiskTier::epochs).
  virtual std::vector<DiskTier::EpochUse> epochs() { return {}; }
  // Nothing: it was never written down, as under leaf_lru, or cannot be read.
  virtual std::optional<StoreLimits> limits() { return std::nullopt; }
  // RocksDB's own checks; the files that cannot be read. Errors: kIo, kCorruption.
  virtual Result<std::vector<std::string>> verify_files() = 0;
  // Counters of the process that holds the store; nothing at rest.
  virtual std::optional<BlockCacheStats> live_stats() { return std::nullopt; }
};

// The parts of a store at rest: no lock is taken, not a byte is written.
struct RestingParts {
  std::unique_ptr<StoreDirectory> directory;
  std::unique_ptr<DiskTier> disk;
  std::unique_ptr<Conversations> conversations;
  std::unique_ptr<Quarantine> quarantine;

  // Errors: those of the four, naming the path; kInvalidArgument without the right key.
  static Result<RestingParts> open(const std::string& path, const EncryptionOptions& encryption);
};

// Opens a store at rest, or beside a holder as of its last flush (facts().holder_pid says so).
// Errors: as RestingParts::open.
Result<std::unique_ptr<StoreReader>> open_resting_store(const std::string& path,
                                                        const EncryptionOptions& encryption);

// Bytes of all files below `path`, as their lengths say.
uint64_t directory_bytes(const std::string& path);
// Of the ballast of the store at `path`, which holds nothing; 0: there is none.
uint64_t ballast_bytes_of(const std::string& path);

}  // namespace ember
