// Changing a running cache's store: the index forgets, then the write lane erases.
#include <memory>
#include <utility>
#include <vector>

#include "store/cache/live_edits_impl.h"

namespace ember {

Status LiveEditsImpl::check_writable() const {
  if (context_.disk == nullptr || !context_.writable) {
    return {ErrorCode::kUnsupported, "there is no store that can be written"};
  }
  if (context_.loading) {
    return {ErrorCode::kBusy, "the store's records are still being read; try again"};
  }
  return {};
}

Ticket LiveEditsImpl::run(HostTask work, TicketRouter::Then then) {
  const Ticket done = context_.device.external_ticket();
  const Ticket ran = context_.device.run_host(HostLane::kWrite, std::move(work));
  context_.tickets.on(ran, [this, done, then = std::move(then)](const Status& status) {
    then(status);
    context_.device.post(done, status);
  });
  return done;
}

// False: it stays.
bool LiveEditsImpl::forget(const EraseItem& item, Erased& erased) {
  using Forgotten = BlockLedger::Forgotten;
  const BlockId block = context_.ledger.index().find(item.hash);
  if (block != kNoBlock && item.unreachable) {
    ++erased.needed;
    return false;
  }
  const Forgotten forgotten =
      block == kNoBlock ? Forgotten::kDone : context_.ledger.forget(block);
  erased.in_use += forgotten == Forgotten::kInUse ? 1 : 0;
  erased.pinned += forgotten == Forgotten::kPinned ? 1 : 0;
  erased.needed += forgotten == Forgotten::kNeeded ? 1 : 0;
  if (forgotten != Forgotten::kDone) return false;
  if (item.tail) context_.tails.erase(item.hash);
  offload_.forget_foreign(item.hash);
  ++(item.tail ? erased.tails : erased.blocks);
  erased.stored_bytes += item.stored_bytes;
  return true;
}

Ticket LiveEditsImpl::erase(std::span<const EraseItem> items, Erased& erased) {
  if (const Status writable = check_writable(); !writable.ok()) {
    const Ticket refused = context_.device.external_ticket();
    context_.device.post(refused, writable);
    return refused;
  }
  struct Erasing {
    std::vector<EraseItem> items;
    size_t done = 0;
  };
  const auto erasing = std::make_shared<Erasing>();
  for (const EraseItem& item : items) {
    if (forget(item, erased)) erasing->items.push_back(item);
  }
  DiskTier* disk = context_.disk;
  Conversations* conversations = context_.conversations;
  return run(
      [erasing, disk, conversations]() -> Status {
        for (; erasing->done < erasing->items.size(); ++erasing->done) {
          const EraseItem& item = erasing->items[erasing->done];
          if (!item.tail) EMBER_TRY(disk->erase(item.hash));
          if (item.tail && conversations != nullptr) {
            EMBER_TRY(conversations->erase_tail(item.hash));
          }
        }
        return {};
      },
      [this, erasing](const Status& status) {
        if (status.ok()) return;
        // Out of the index and still in the store: the first to go from there.
        std::vector<ForeignRecord> left;
        std::vector<BlockHash> tails;
        for (size_t i = erasing->done; i < erasing->items.size(); ++i) {
          const EraseItem& item = erasing->items[i];
          if (item.tail) tails.push_back(item.hash);
          if (!item.tail) left.push_back({item.hash, item.position, item.stored_bytes});
        }
        offload_.add_foreign(left);
        offload_.erase_tails(tails);
      });
}

void LiveEditsImpl::proven_wrong(const BlockHash& hash) {
  const BlockId block = context_.ledger.index().find(hash);
  if (block == kNoBlock || !context_.ledger.entry(block).in(Tier::kDisk)) return;
  context_.damaged(block);
}

void LiveEditsImpl::on_write_lane(HostTask work) {
  const Ticket ran = context_.device.run_host(HostLane::kWrite, std::move(work));
  context_.tickets.on(ran, [](const Status&) {});
}

Ticket LiveEditsImpl::flush() {
  if (context_.disk == nullptr) return {};
  DiskTier* disk = context_.disk;
  return run([disk] { return disk->flush(); },
             [this](const Status& status) { offload_.flushed_by_others(status); });
}

}  // namespace ember
