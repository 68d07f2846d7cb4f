// A store at rest, opened to be changed: its lock is held until the editor goes.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "store/disk_plan.h"
#include "store/edit/parts_editor.h"

namespace ember {
namespace {

constexpr uint64_t kMemtableBytes = 8u << 20;
constexpr uint64_t kCacheBytes = 8u << 20;
constexpr uint64_t kProgressStep = 64;

class RestingEditor final : public PartsEditor {
 public:
  explicit RestingEditor(WritableParts owned)
      : PartsEditor(parts_of(owned)), owned_(std::move(owned)), reader_(parts()) {}

  StoreReader& reader() override { return reader_; }
  Status settle() override { return {}; }

  Result<Erased> erase(std::span<const EraseItem> items, const OnProgress& on_progress) override {
    Erased erased;
    bool stopped = false;
    for (uint64_t done = 0; done < items.size() && !stopped; ++done) {
      const EraseItem& item = items[done];
      EMBER_TRY(item.tail ? owned_.conversations->erase_tail(item.hash)
                          : owned_.disk->erase(item.hash));
      ++(item.tail ? erased.tails : erased.blocks);
      erased.stored_bytes += item.stored_bytes;
      stopped = done % kProgressStep == 0 && !on_progress(done);
    }
    EMBER_TRY(owned_.disk->flush());
    if (stopped) return Error{ErrorCode::kCancelled, "stopped"};
    return erased;
  }

  Result<ForgetReport> forget(const ForgetRequest& request) override {
    return forget_scope(owned_.directory.get(), *owned_.disk, owned_.conversations.get(), request);
  }

 protected:
  Status on_parts(HostTask work) override { return work(); }
  bool tell_cache(const BlockHash&) override { return false; }

 private:
  // Of a store that this process holds: nothing is read as of an earlier time.
  class Reader final : public PartsReader {
   public:
    explicit Reader(const StoreReaderParts& parts) : PartsReader(parts) {}
    StoreFacts facts() override {
      StoreFacts facts;
      facts.path = parts().directory->path();
      facts.version = kStoreVersion;
      facts.encrypted = parts().directory->sealer() != nullptr;
      facts.health = parts().disk->stats().health;
      return facts;
    }
  };

  static StoreReaderParts parts_of(const WritableParts& owned) {
    return {owned.directory.get(), owned.disk.get(), owned.conversations.get(),
            owned.quarantine.get()};
  }

  const WritableParts owned_;
  Reader reader_;
};

}  // namespace

Result<WritableParts> WritableParts::open(const std::string& path,
                                          const EncryptionOptions& encryption,
                                          uint64_t disk_bytes) {
  // First whether there is one: opening to write would make it.
  EMBER_TRY(StoreDirectory::open_read_only(path, encryption));
  WritableParts parts;
  EMBER_ASSIGN(parts.directory, StoreDirectory::open(path, encryption));
  if (parts.directory->read_only()) {
    return Error{ErrorCode::kIo, "nothing can be changed: " + why_not_writable(path)};
  }
  const std::string& trouble = parts.directory->key_trouble();
  if (!trouble.empty()) return Error{ErrorCode::kInvalidArgument, trouble};
  EMBER_ASSIGN(const DiskPlan plan, plan_disk(disk_bytes));
  parts.quarantine = Quarantine::open(path + "/quarantine", plan.quarantine_bytes);
  DiskTierOptions disk;
  disk.directory = path + "/blocks";
  // A ballast that is there is kept, no longer than the limit asks for; none is made.
  disk.ballast_bytes = std::min(ballast_bytes_of(path), plan.ballast_bytes);
  disk.limit_bytes = plan.blocks_bytes + disk.ballast_bytes;
  disk.memtable_bytes = kMemtableBytes;
  disk.block_cache_bytes = kCacheBytes;
  disk.sealer = parts.directory->sealer();
  disk.set_aside = [keeper = parts.quarantine.get()](const QuarantineEntry& entry) {
    // One that is full or cannot be written keeps nothing and counts that.
    static_cast<void>(keeper->keep(entry, system_clock().unix_us()));
  };
  EMBER_ASSIGN(parts.disk, DiskTier::open(disk));
  ConversationsOptions turns;
  turns.directory = path + "/conversations";
  turns.limit_bytes = plan.conversations_bytes;
  turns.sealer = parts.directory->sealer();
  EMBER_ASSIGN(parts.conversations, Conversations::open(turns));
  return parts;
}

Result<std::unique_ptr<StoreEditor>> open_resting_editor(const std::string& path,
                                                         const EncryptionOptions& encryption,
                                                         uint64_t disk_bytes) {
  EMBER_ASSIGN(WritableParts parts, WritableParts::open(path, encryption, disk_bytes));
  return std::unique_ptr<StoreEditor>(std::make_unique<RestingEditor>(std::move(parts)));
}

}  // namespace ember
