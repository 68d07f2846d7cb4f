// One block's read, with its proof and its publication.
#include "store/cache/host_read.h"

#include <memory>
#include <utility>

namespace ember {
namespace {

struct Read {
  BlockId block = kNoBlock;
  SlotLease slot;
  BlockIdentity identity;
  BlockRecord record;
};

bool publish(CacheContext& context, const Read& read, const Status& status) {
  BlockLedger& ledger = context.ledger;
  const bool stored = ledger.entry(read.block).in(Tier::kDisk);
  if (!stored) return false;
  if (status.ok() && !ledger.entry(read.block).damaged) {
    ledger.publish(read.block, Tier::kHost, read.slot);
    return true;
  }
  if (!status.ok() && status.error().code == ErrorCode::kCorruption) {
    context.damaged(read.block);
  } else if (!status.ok()) {
    ++context.counters.read_errors;
  }
  return false;
}

}  // namespace

bool can_be_read_ahead(const CacheContext& context, BlockId block) {
  const BlockEntry& entry = context.ledger.entry(block);
  return entry.in(Tier::kDisk) && !entry.in(Tier::kHost) && !entry.in(Tier::kDevice) &&
         !entry.damaged && entry.numerics_build == context.numerics_build &&
         !context.ledger.is_tail(block);
}

void read_ahead(CacheContext& context, BlockId block, SlotLease slot, HostReadEnded ended) {
  const auto read = std::make_shared<Read>();
  read->block = block;
  read->identity = context.identity_of(block);
  std::byte* bytes = context.host_tier.at(slot.slot());
  read->slot = std::move(slot);
  context.ledger.hold(block);
  ++context.ledger.notes(block).disk_readers;
  const uint32_t groups = context.layout.group_count();
  const Ticket ticket = context.device.run_host(
      HostLane::kRead, [reader = context.reader(), read, bytes, groups]() -> Status {
        EMBER_TRY(reader.read_first(read->identity, read->record, bytes));
        if (!reader.same_grouping(read->record)) return {};
        for (uint32_t group = 1; group < groups; ++group) {
          EMBER_TRY(reader.read_group(read->record, group, bytes));
        }
        return {};
      });
  CacheContext* in = &context;
  context.tickets.on(ticket, [in, read, then = std::move(ended)](const Status& status) {
    const bool published = publish(*in, *read, status);
    then(read->block, published, read->slot);
    read->slot.release();
    --in->ledger.notes(read->block).disk_readers;
    in->ledger.let_go(read->block);
  });
}

}  // namespace ember
