// Parts reader: what a reader at rest and one inside a holder have in common: a walk in pages over
// the disk tier and the tails, with a place for each block that the reader knows best.
//
// Journey    disk_tier, conversations, quarantine -> [parts_reader] -> store_reader
// Invariant  a page of records and the tails are all that is held; reading changes nothing
// Threads    any, one caller at a time
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "store/store_directory.h"
#include "store/store_reader.h"

namespace ember {

// The parts outlive the reader.
struct StoreReaderParts {
  StoreDirectory* directory = nullptr;
  DiskTier* disk = nullptr;
  Conversations* conversations = nullptr;
  Quarantine* quarantine = nullptr;
};

class PartsReader : public StoreReader {
 public:
  explicit PartsReader(const StoreReaderParts& parts) : parts_(parts) {}

  const HashSecret& secret() const override { return parts_.directory->secret(); }
  Result<Walked> walk(const Visitor& visit) override;
  Result<std::optional<BlockRecord>> record(const BlockHash& hash) override;
  Status read_group(const BlockRecord& record, uint32_t group, Bytes raw) override;
  Result<NamespaceNote> name_space(const NamespaceHash& name_space) override {
    return read_namespace_note(parts_.directory->path(), name_space);
  }
  Conversations& conversations() override { return *parts_.conversations; }
  std::vector<QuarantineRow> quarantined() override { return parts_.quarantine->list(); }
  QuarantineStats quarantine_stats() override { return parts_.quarantine->stats(); }
  DiskTierStats disk_stats() override { return parts_.disk->stats(); }
  std::vector<DiskTier::EpochUse> epochs() override { return parts_.disk->epochs(); }
  std::optional<StoreLimits> limits() override;
  Result<std::vector<std::string>> verify_files() override;

 protected:
  // Where the blocks of a page are, and their uses; `places` begins as on disk, durable, nothing
  // else, `touches` as the disk has them.
  // Errors: that of a holder that ends, or is too busy to say.
  virtual Status place(std::span<const BlockHash> /*hashes*/, std::span<BlockPlace> /*places*/,
                       std::span<TouchRecord> /*touches*/) {
    return {};
  }
  // Blocks that no disk has yet, before those that it has: one that is stored meanwhile is met
  // there and passed over, since it is in `shown`. False: `visit` wants no more.
  using Shown = std::unordered_set<BlockHash>;
  virtual Result<bool> walk_unstored(const Visitor& /*visit*/, Walked& /*walked*/, Shown&) {
    return true;
  }
  const StoreReaderParts& parts() const { return parts_; }

 private:
  struct Page {
    std::vector<BlockRecord> records;
    std::vector<TouchRecord> touches;
  };
  // False: `visit` wants no more.
  Result<bool> show(Page page, const Visitor& visit);
  Result<bool> walk_share(uint32_t share, const Visitor& visit, const Shown& shown,
                          Walked& walked);
  Status read_tails();

  const StoreReaderParts parts_;
  uint64_t unreadable_tails_ = 0;
  std::optional<std::map<BlockHash, BlockRecord>> tails_;  // as the last walk found them
};

}  // namespace ember
