// Walking the records of a store's parts, a page at a time.
#include "store/inspect/parts_reader.h"

#include <utility>

#include "store/cache/shadow_file.h"

namespace ember {
namespace {

// Records in a page: some 300 KiB of them, and one question to the holder's engine thread.
constexpr size_t kPageRecords = 512;

}  // namespace

Result<bool> PartsReader::show(Page page, const Visitor& visit) {
  std::vector<BlockHash> hashes;
  std::vector<BlockPlace> places(page.records.size());
  for (size_t i = 0; i < places.size(); ++i) {
    hashes.push_back(page.records[i].hash);
    places[i].in[static_cast<size_t>(Tier::kDisk)] = true;
    places[i].damaged = page.records[i].epoch == 0 && !page.records[i].tail;
  }
  EMBER_TRY(place(hashes, places, page.touches));
  for (size_t i = 0; i < places.size(); ++i) {
    if (!visit({page.records[i], page.touches[i], places[i]})) return false;
  }
  return true;
}

Result<bool> PartsReader::walk_share(uint32_t share, const Visitor& visit, const Shown& shown,
                                     Walked& walked) {
  DiskTier::ScanFrom from{.share = share, .cursor = {}};
  for (bool done = false; !done;) {
    Page page;
    EMBER_ASSIGN(const DiskTier::ScanStep step,
                 parts_.disk->scan(from, kPageRecords,
                                   [&](const BlockRecord& record, const TouchRecord& touch) {
                                     if (shown.contains(record.hash)) return;
                                     page.records.push_back(record);
                                     page.touches.push_back(touch);
                                   }));
    walked.blocks += page.records.size();
    walked.unreadable += step.unreadable;
    walked.forgotten += step.forgotten;
    EMBER_ASSIGN(const bool more, show(std::move(page), visit));
    if (!more) return false;
    from.cursor = step.cursor;
    done = step.done;
  }
  return true;
}

Result<StoreReader::Walked> PartsReader::walk(const Visitor& visit) {
  Walked walked;
  Shown shown;
  EMBER_ASSIGN(bool more, walk_unstored(visit, walked, shown));
  for (uint32_t share = 0; more && share < DiskTier::kScanShares; ++share) {
    EMBER_ASSIGN(more, walk_share(share, visit, shown, walked));
  }
  if (!more) return walked;
  EMBER_TRY(read_tails());
  walked.unreadable += unreadable_tails_;
  Page page;
  for (const auto& [hash, tail] : *tails_) {
    if (!shown.contains(hash)) page.records.push_back(tail);
  }
  walked.tails += page.records.size();
  page.touches.resize(page.records.size());
  EMBER_TRY(show(std::move(page), visit));
  return walked;
}

Status PartsReader::read_tails() {
  EMBER_ASSIGN(Conversations::TailListing tails, parts_.conversations->list_tails());
  tails_.emplace();
  for (BlockRecord& tail : tails.records) tails_->insert_or_assign(tail.hash, std::move(tail));
  unreadable_tails_ = tails.unreadable;
  return {};
}

Result<std::optional<BlockRecord>> PartsReader::record(const BlockHash& hash) {
  EMBER_ASSIGN(std::optional<BlockRecord> found, parts_.disk->read_record(hash));
  if (found) return found;
  if (!tails_) EMBER_TRY(read_tails());
  const auto tail = tails_->find(hash);
  if (tail != tails_->end()) found = tail->second;
  return found;
}

Status PartsReader::read_group(const BlockRecord& record, uint32_t group, Bytes raw) {
  return record.tail ? parts_.conversations->read_tail_group(record, group, raw)
                     : parts_.disk->read_group(record, group, raw);
}

std::optional<StoreLimits> PartsReader::limits() {
  const std::optional<ShadowHead> head =
      read_shadow_head({parts_.directory->path() + "/SHADOWS", parts_.directory->sealer()});
  if (!head) return std::nullopt;
  return StoreLimits{head->limit_bytes, head->capacity_blocks, head->policy};
}

Result<std::vector<std::string>> PartsReader::verify_files() {
  EMBER_ASSIGN(std::vector<std::string> files, parts_.disk->verify_files());
  EMBER_ASSIGN(const std::vector<std::string> others, parts_.conversations->verify_files());
  files.insert(files.end(), others.begin(), others.end());
  return files;
}

}  // namespace ember
