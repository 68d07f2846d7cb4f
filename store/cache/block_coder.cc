// Encoding of slots into records, and proven reading of records into slots.
#include "store/cache/block_coder.h"

#include <optional>
#include <utility>

#include "base/clock.h"
#include "store/codec.h"
#include "store/cache/slot_copies.h"

namespace ember {
namespace {

Error damage(const BlockRecord& record, const std::string& what) {
  return {ErrorCode::kCorruption, "block record " + record.hash.hex() + ": " + what};
}

}  // namespace

CodedBlock encode_block(const KvLayout& layout, const BlockIdentity& identity,
                        const std::byte* slot) {
  CodedBlock coded;
  coded.record.tail = identity.tail;
  coded.record.name_space = identity.name_space;
  coded.record.scope = identity.scope;
  coded.record.publisher = identity.publisher;
  coded.record.hash = identity.hash;
  coded.record.parent = identity.parent;
  coded.record.numerics_build = identity.numerics_build;
  coded.record.position = identity.position;
  coded.record.streams = {layout.stream()};
  coded.record.tokens = identity.tokens;

  const auto tokens = static_cast<uint32_t>(identity.tokens.size());
  const GroupShape shape = {layout.stream().dtype, layout.stream().row_values, tokens};
  std::vector<std::byte> packed;
  for (uint32_t g = 0; g < layout.group_count(); ++g) {
    const LayerGroup& layers = layout.group(g);
    ConstBytes raw(slot + layers.offset, layers.bytes);
    if (tokens < layout.block_tokens()) {
      packed.resize(layout.group_bytes(g, tokens));
      gather_group(layout, g, tokens, slot, packed.data());
      raw = packed;
    }
    EncodedGroup encoded = encode_group(shape, raw);
    GroupEntry entry;
    entry.first_layer = layers.first_layer;
    entry.layers = layers.layers;
    entry.raw_bytes = static_cast<uint32_t>(raw.size());
    entry.stored_bytes = static_cast<uint32_t>(encoded.payload.size());
    entry.codec = encoded.codec;
    entry.checksum = checksum64(raw);
    coded.record.groups.push_back(entry);
    coded.payloads.push_back(std::move(encoded.payload));
  }
  return coded;
}

Status check_record_shape(const BlockRecord& record, const KvLayout& layout) {
  if (record.streams.size() != 1 || !(record.streams[0] == layout.stream())) {
    return damage(record, "streams are not those of the layout");
  }
  const size_t tokens = record.tokens.size();
  if (record.tail ? tokens == 0 || tokens >= layout.block_tokens()
                  : tokens != layout.block_tokens()) {
    return damage(record, "found " + std::to_string(tokens) + " tokens for a block of " +
                              std::to_string(layout.block_tokens()));
  }
  uint32_t next_layer = 0;
  for (const GroupEntry& group : record.groups) {
    if (group.first_layer != next_layer || group.layers == 0 ||
        group.layers > layout.layers() - next_layer ||
        group.raw_bytes != group.layers * tokens * layout.row_bytes()) {
      return damage(record, "the group from layer " + std::to_string(group.first_layer) +
                                " does not fit the layout");
    }
    next_layer += group.layers;
  }
  if (next_layer != layout.layers()) {
    return damage(record, "found groups of " + std::to_string(next_layer) + " layers, expected " +
                              std::to_string(layout.layers()));
  }
  return {};
}

Status check_record(const BlockRecord& record, const BlockIdentity& identity,
                    const KvLayout& layout) {
  if (record.hash != identity.hash) return damage(record, "found under another hash");
  if (record.tail != identity.tail) return damage(record, "tail flag differs");
  if (record.name_space != identity.name_space) return damage(record, "namespace differs");
  if (record.scope != identity.scope) return damage(record, "scope differs");
  if (record.parent != identity.parent) return damage(record, "parent hash differs");
  if (record.position != identity.position) return damage(record, "position differs");
  if (record.numerics_build != identity.numerics_build) {
    return damage(record, "numerics build differs");
  }
  if (record.tokens != identity.tokens) return damage(record, "token ids differ");
  return check_record_shape(record, layout);
}

bool BlockReader::same_grouping(const BlockRecord& record) const {
  if (record.groups.size() != layout.group_count()) return false;
  for (uint32_t g = 0; g < layout.group_count(); ++g) {
    if (record.groups[g].layers != layout.group(g).layers) return false;
  }
  return true;
}

Status BlockReader::read_group_once(const BlockRecord& record, uint32_t group,
                                    std::byte* slot) const {
  const GroupEntry& entry = record.groups[group];
  if (record.tail) {
    if (conversations == nullptr) return {ErrorCode::kIo, "no database of tails"};
    std::vector<std::byte> packed(entry.raw_bytes);
    EMBER_TRY(conversations->read_tail_group(record, group, packed));
    scatter_layers(layout, entry.first_layer, entry.layers,
                   static_cast<uint32_t>(record.tokens.size()), packed.data(), slot);
    return {};
  }
  const Bytes raw(slot + layout.layer_offset(entry.first_layer), entry.raw_bytes);
  return disk.read_group(record, group, raw);
}

Status BlockReader::read_group(const BlockRecord& record, uint32_t group, std::byte* slot) const {
  if (read_group_once(record, group, slot).ok()) return {};
  count_retry();
  const Status again = read_group_once(record, group, slot);
  if (!again.ok()) set_aside(record.hash, record.position, record.tail, again.error());
  return again;
}

Status BlockReader::find_record_once(const BlockIdentity& identity, BlockRecord& record) const {
  EMBER_ASSIGN(std::optional<BlockRecord> found, disk.read_record(identity.hash));
  if (!found) {
    return Error{ErrorCode::kCorruption, "block record " + identity.hash.hex() + " is gone"};
  }
  record = std::move(*found);
  return check_record(record, identity, layout);
}

Status BlockReader::find_record(const BlockIdentity& identity, BlockRecord& record) const {
  if (find_record_once(identity, record).ok()) return {};
  count_retry();
  const Status again = find_record_once(identity, record);
  if (!again.ok()) set_aside(identity.hash, identity.position, identity.tail, again.error());
  return again;
}

Status BlockReader::read_first(const BlockIdentity& identity, BlockRecord& record,
                               std::byte* slot) const {
  EMBER_TRY(identity.tail ? check_record(record, identity, layout)
                          : find_record(identity, record));
  poison_slot(layout, static_cast<uint32_t>(identity.tokens.size()), slot);
  const auto groups =
      same_grouping(record) ? 1u : static_cast<uint32_t>(record.groups.size());
  for (uint32_t g = 0; g < groups; ++g) EMBER_TRY(read_group(record, g, slot));
  return {};
}

void BlockReader::count_retry() const {
  if (counters != nullptr) ++counters->retried;
}

// Nothing is kept of a record that is not there: it was erased or written again meanwhile, or lost.
void BlockReader::set_aside(const BlockHash& hash, uint32_t position, bool tail,
                            const Error& why) const {
  if (quarantine == nullptr || why.code != ErrorCode::kCorruption) return;
  if (tail && conversations == nullptr) return;
  Result<std::optional<FoundRecord>> found =
      tail ? conversations->read_tail_as_found(hash) : disk.read_as_found(hash);
  if (!found.ok() || !found->has_value()) return;
  // A quarantine that is full or cannot be written keeps nothing and counts that.
  static_cast<void>(quarantine->keep(
      {hash, position, tail, why.message, std::move(**found)}, system_clock().unix_us()));
}

}  // namespace ember
