// Live store: a reader of parts that asks the engine thread, page by page.
#include "store/inspect/live_store.h"

#include <unistd.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "store/inspect/parts_reader.h"
#include "store/live_view.h"

namespace ember {
namespace {

constexpr size_t kPageHashes = 512;
constexpr uint32_t kPageSlots = 512;

BlockPlace block_place(const LiveView::Place& place) {
  return {.in = place.in,
          .leases = place.users,
          .pinned_until_unix_us = place.pinned_until_unix_us,
          .durable = place.durable,
          .damaged = place.damaged};
}

// No block on disk has such a group.
bool is_unstored(const BlockRecord& record) {
  return !record.groups.empty() && record.groups[0].stored_bytes == 0;
}

class LiveStore final : public PartsReader {
 public:
  LiveStore(const BlockCache& cache, EngineCall call)
      : PartsReader(parts_of(cache.live_view())),
        cache_(cache),
        view_(cache.live_view()),
        call_(std::move(call)) {}

  StoreFacts facts() override {
    StoreFacts facts;
    facts.path = parts().directory->path();
    facts.version = kStoreVersion;
    facts.encrypted = parts().directory->sealer() != nullptr;
    facts.holder_pid = static_cast<int>(::getpid());
    facts.live = true;
    const Status asked = call_([&] {
      const StoreHealth& health = cache_.health();
      facts.health = health.reason.empty() ? "ok" : health.reason;
    });
    if (!asked.ok()) facts.health = asked.error().message;
    return facts;
  }

  Result<std::optional<BlockRecord>> record(const BlockHash& hash) override {
    // In RAM first: what leaves it for the disk meanwhile is found there.
    std::optional<LiveView::Unstored> unstored;
    EMBER_TRY(call_([&] { unstored = view_.find_unstored(hash); }));
    if (unstored) return std::optional<BlockRecord>(std::move(unstored->record));
    return PartsReader::record(hash);
  }

  Status read_group(const BlockRecord& record, uint32_t group, Bytes raw) override {
    if (!is_unstored(record)) return PartsReader::read_group(record, group, raw);
    Status read;
    EMBER_TRY(call_([&] { read = view_.read_unstored(record.hash, group, raw); }));
    return read;
  }

  std::optional<BlockCacheStats> live_stats() override {
    std::optional<BlockCacheStats> stats;
    static_cast<void>(call_([&] { stats = cache_.stats(); }));  // then it has none to tell
    return stats;
  }

 protected:
  Status place(std::span<const BlockHash> hashes, std::span<BlockPlace> places,
               std::span<TouchRecord> touches) override {
    for (size_t from = 0; from < hashes.size(); from += kPageHashes) {
      const auto page = hashes.subspan(from, std::min(kPageHashes, hashes.size() - from));
      std::vector<LiveView::Place> found;
      EMBER_TRY(call_([&] { found = view_.places(page); }));
      // What the index does not know (another model's, say) is on disk, as its record says.
      for (size_t i = 0; i < found.size(); ++i) {
        if (!found[i].known) continue;
        places[from + i] = block_place(found[i]);
        touches[from + i] = found[i].touch;
      }
    }
    return {};
  }

  // A block may change its slot between two pages.
  Result<bool> walk_unstored(const Visitor& visit, Walked& walked, Shown& shown) override {
    LiveView::UnstoredPage page;
    do {
      const uint32_t from = page.next;
      page = {};
      EMBER_TRY(call_([&] { page = view_.unstored(from, kPageSlots); }));
      for (const LiveView::Unstored& block : page.blocks) {
        if (!shown.insert(block.record.hash).second) continue;
        ++(block.record.tail ? walked.tails : walked.blocks);
        const BlockPlace place = block_place(block.place);
        if (!visit({block.record, block.place.touch, place})) return false;
      }
    } while (!page.done);
    return true;
  }

 private:
  static StoreReaderParts parts_of(const LiveView& view) {
    const LiveView::Parts parts = view.parts();
    return {parts.directory, parts.disk, parts.conversations, parts.quarantine};
  }

  const BlockCache& cache_;
  const LiveView& view_;
  EngineCall call_;
};

}  // namespace

Result<std::unique_ptr<StoreReader>> open_live_store(const BlockCache& cache, EngineCall call) {
  const LiveView::Parts parts = cache.live_view().parts();
  if (parts.directory == nullptr || parts.disk == nullptr || parts.conversations == nullptr ||
      parts.quarantine == nullptr) {
    return Error{ErrorCode::kIo, "the store is in use without its blocks or conversations"};
  }
  return std::unique_ptr<StoreReader>(std::make_unique<LiveStore>(cache, std::move(call)));
}

}  // namespace ember
