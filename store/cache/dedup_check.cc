// Copies a block that was computed again to a host slot and compares it with its record.
#include "store/cache/dedup_check.h"

#include <optional>
#include <utility>

#include "store/codec.h"
#include "store/cache/slot_copies.h"

namespace ember {
namespace {

// Errors: kCorruption with the first group that differs. Without a record of this block there is
// nothing to compare.
Status same_as_stored(DiskTier& disk, const KvLayout& layout, const BlockIdentity& identity,
                      const std::byte* slot) {
  const Result<std::optional<BlockRecord>> found = disk.read_record(identity.hash);
  if (!found.ok() || !found->has_value()) return {};
  const BlockRecord& record = **found;
  if (!check_record(record, identity, layout).ok()) return {};
  for (const GroupEntry& group : record.groups) {
    const ConstBytes raw(slot + layout.layer_offset(group.first_layer), group.raw_bytes);
    if (checksum64(raw) == group.checksum) continue;
    return {ErrorCode::kCorruption, "block " + identity.hash.hex() + " from layer " +
                                        std::to_string(group.first_layer) +
                                        ": computed again it is not what was stored"};
  }
  return {};
}

}  // namespace

void DedupCheck::compare(BlockId block, SlotLease device) {
  if (busy() || context_.disk == nullptr || !context_.ledger.entry(block).in(Tier::kDisk)) return;
  std::optional<SlotLease> host = context_.host_tier.slots().take();
  if (!host) return;
  host_ = std::move(*host);
  device_ = std::move(device);
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
      host_.release();
    }
  });
}

void DedupCheck::hash_against_record(const BlockIdentity& identity) {
  DiskTier& disk = *context_.disk;
  const KvLayout& layout = context_.layout;
  const std::byte* slot = context_.host_tier.at(host_.slot());
  const Ticket ticket =
      context_.device.run_host(HostLane::kRead, [&disk, &layout, identity, slot]() -> Status {
        return same_as_stored(disk, layout, identity, slot);
      });
  context_.tickets.on(ticket, [this](const Status& status) {
    host_.release();
    ++context_.counters.dedup_checked;
    if (!status.ok()) ++context_.counters.dedup_mismatch;
  });
}

}  // namespace ember
