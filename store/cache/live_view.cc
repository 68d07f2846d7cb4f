// Looking at a running cache, some blocks at a time.
#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "store/cache/live_view_impl.h"

namespace ember {

LiveView::Place LiveViewImpl::place_of(BlockId block) const {
  const BlockEntry& entry = context_.ledger.entry(block);
  Place place;
  place.known = true;
  for (const Tier tier : kAllTiers) place.in[static_cast<size_t>(tier)] = entry.in(tier);
  const BlockNotes& notes = context_.ledger.notes(block);
  place.users = notes.holders;
  place.touch = {notes.last_use_unix_us, notes.earlier_hits + entry.hits};
  place.durable = entry.in(Tier::kDisk);
  place.damaged = entry.damaged;
  const int64_t until_us = context_.ledger.ranks().pins().pinned_until_us(block);
  if (until_us > 0) {
    place.pinned_until_unix_us = context_.clock.unix_us() + until_us - context_.clock.now_us();
  }
  return place;
}

std::vector<LiveView::Place> LiveViewImpl::places(std::span<const BlockHash> hashes) const {
  std::vector<Place> places(hashes.size());
  std::unordered_set<BlockHash> unflushed;
  offload_.each_unflushed([&unflushed](const BlockHash& hash) { unflushed.insert(hash); });
  for (size_t i = 0; i < hashes.size(); ++i) {
    const BlockId block = context_.ledger.index().find(hashes[i]);
    if (block == kNoBlock) continue;
    places[i] = place_of(block);
    places[i].durable = places[i].durable && !unflushed.contains(hashes[i]);
  }
  return places;
}

LiveView::Unstored LiveViewImpl::unstored_block(BlockId block) const {
  const BlockIdentity identity = context_.identity_of(block);
  Unstored shown;
  BlockRecord& record = shown.record;
  record.tail = identity.tail;
  record.name_space = identity.name_space;
  record.scope = identity.scope;
  record.publisher = identity.publisher;
  record.hash = identity.hash;
  record.parent = identity.parent;
  record.numerics_build = identity.numerics_build;
  record.position = identity.position;
  record.streams = {context_.layout.stream()};
  record.tokens = identity.tokens;
  const auto tokens = static_cast<uint32_t>(identity.tokens.size());
  for (uint32_t g = 0; g < context_.layout.group_count(); ++g) {
    GroupEntry group;
    group.first_layer = context_.layout.group(g).first_layer;
    group.layers = context_.layout.group(g).layers;
    group.raw_bytes = static_cast<uint32_t>(context_.layout.group_bytes(g, tokens));
    record.groups.push_back(group);
  }
  shown.place = place_of(block);
  return shown;
}

LiveView::UnstoredPage LiveViewImpl::unstored(uint32_t from, uint32_t slots) const {
  const std::span<const BlockId> device = context_.ledger.residents_of(Tier::kDevice);
  const std::span<const BlockId> host = context_.ledger.residents_of(Tier::kHost);
  const size_t all = device.size() + host.size();
  UnstoredPage page;
  const size_t end = std::min<size_t>(all, size_t{from} + slots);
  for (size_t at = from; at < end; ++at) {
    const bool on_device = at < device.size();
    const BlockId block = on_device ? device[at] : host[at - device.size()];
    if (block == kNoBlock) continue;
    const BlockEntry& entry = context_.ledger.entry(block);
    const bool shown_before = !on_device && entry.in(Tier::kDevice);
    if (!entry.in(Tier::kDisk) && !shown_before) page.blocks.push_back(unstored_block(block));
  }
  page.next = static_cast<uint32_t>(end);
  page.done = end == all;
  return page;
}

std::optional<LiveView::Unstored> LiveViewImpl::find_unstored(const BlockHash& hash) const {
  const BlockId block = context_.ledger.index().find(hash);
  if (block == kNoBlock) return std::nullopt;
  const BlockEntry& entry = context_.ledger.entry(block);
  if (entry.in(Tier::kDisk) || !entry.anywhere()) return std::nullopt;
  return unstored_block(block);
}

Status LiveViewImpl::read_unstored(const BlockHash& hash, uint32_t group, Bytes raw) const {
  const BlockId block = context_.ledger.index().find(hash);
  if (block == kNoBlock || group >= context_.layout.group_count()) {
    return {ErrorCode::kInvalidArgument, "block " + hash.hex() + " is in RAM no more"};
  }
  const BlockEntry& entry = context_.ledger.entry(block);
  if (!entry.in(Tier::kHost)) {
    return {entry.in(Tier::kDevice) ? ErrorCode::kBusy : ErrorCode::kInvalidArgument,
            "block " + hash.hex() +
                (entry.in(Tier::kDevice) ? " is still on the device alone; try again"
                                         : " is in RAM no more")};
  }
  const std::byte* slot =
      context_.host_tier.at(entry.place[static_cast<size_t>(Tier::kHost)]);
  if (raw.size() != context_.layout.group_bytes(group, entry.token_count)) {
    return {ErrorCode::kInvalidArgument, "block " + hash.hex() + " has another length by now"};
  }
  if (entry.token_count == context_.layout.block_tokens()) {
    std::memcpy(raw.data(), slot + context_.layout.group(group).offset, raw.size());
  } else {
    gather_group(context_.layout, group, entry.token_count, slot, raw.data());
  }
  return {};
}

}  // namespace ember
