// Copies a block that was computed again to a host slot and compares it with its record.
#include "store/cache/dedup_check.h"

#include <memory>
#include <optional>
#include <utility>

#include "store/codec.h"
#include "store/cache/slot_copies.h"

namespace ember {
namespace {

// What a block that was computed again says of its record.
struct Verdict {
  Status record;           // kCorruption: it is not this block's record, or cannot be proven
  bool different = false;  // proven, but of other bytes
};

Verdict compare_with_stored(const BlockReader& reader, const BlockIdentity& identity,
                            const std::byte* slot) {
  Verdict verdict;
  BlockRecord record;
  verdict.record = reader.find_record(identity, record);
  if (!verdict.record.ok()) return verdict;
  for (const GroupEntry& group : record.groups) {
    const ConstBytes raw(slot + reader.layout.layer_offset(group.first_layer), group.raw_bytes);
    if (checksum64(raw) != group.checksum) verdict.different = true;
  }
  return verdict;
}

}  // namespace

void DedupCheck::compare(BlockId block, SlotLease device) {
  if (busy() || context_.disk == nullptr || !context_.ledger.entry(block).in(Tier::kDisk)) return;
  std::optional<SlotLease> host = context_.host_tier.slots().take();
  if (!host) return;
  host_ = std::move(*host);
  device_ = std::move(device);
  block_ = block;
  context_.ledger.hold(block);
  const BlockIdentity identity = context_.identity_of(block);
  std::vector<Copy> copies;
  for (uint32_t group = 0; group < context_.layout.group_count(); ++group) {
    append_group_copies(context_.layout, group, context_.layout.block_tokens(),
                        context_.device_pool.at(device_.slot()),
                        context_.host_tier.at(host_.slot()), copies);
  }
  context_.tickets.on(context_.device.copy(copies), [this, identity](const Status& status) {
    device_.release();
    if (status.ok()) {
      hash_against_record(identity);
    } else {
      end();
    }
  });
}

void DedupCheck::end() {
  host_.release();
  context_.ledger.let_go(block_);
}

void DedupCheck::hash_against_record(const BlockIdentity& identity) {
  const BlockReader reader = context_.reader();
  const std::byte* slot = context_.host_tier.at(host_.slot());
  const auto verdict = std::make_shared<Verdict>();
  const Ticket ticket =
      context_.device.run_host(HostLane::kRead, [reader, identity, slot, verdict]() -> Status {
        *verdict = compare_with_stored(reader, identity, slot);
        return {};
      });
  context_.tickets.on(ticket, [this, verdict](const Status&) {
    if (verdict->record.ok()) {
      ++context_.counters.dedup_checked;
      if (verdict->different) ++context_.counters.dedup_mismatch;
    } else if (verdict->record.error().code == ErrorCode::kCorruption &&
               context_.ledger.entry(block_).in(Tier::kDisk)) {
      context_.damaged(block_);  // healed from the copy that was computed now
    }
    end();
  });
}

}  // namespace ember
