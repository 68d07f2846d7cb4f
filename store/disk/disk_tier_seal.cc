// Disk tier: where records and payloads pass the sealer; without one they pass unchanged.
#include "store/disk/disk_tier_impl.h"
#include "store/disk/value_sealer.h"

namespace ember {
namespace {

// A group's place without its epoch: rewriting an epoch moves sealed bytes as they are. What could
// be put back in its place is the same block's group of another epoch, and that has equal bytes, or
// the record's checksum does not agree.
std::string group_key(const BlockHash& hash, uint32_t group) {
  std::string key(hash.view());
  key.push_back(static_cast<char>(group >> 8));
  key.push_back(static_cast<char>(group & 0xff));
  return key;
}

}  // namespace

Result<std::string> DiskTierImpl::row_of(const BlockRecord& record) const {
  return stored_form(options_.sealer.get(), record.scope,
                     {ValueKind::kRecord, record.hash.view()}, encode_record(record));
}

Result<std::optional<BlockRecord>> DiskTierImpl::record_of(std::string_view key,
                                                           std::string_view row) const {
  BlockRecord record;
  EMBER_ASSIGN(const bool readable, read_row(key, row, record));
  if (!readable) return std::optional<BlockRecord>();
  return std::optional<BlockRecord>(std::move(record));
}

Result<bool> DiskTierImpl::read_row(std::string_view key, std::string_view row,
                                    BlockRecord& record) const {
  const std::optional<BlockHash> hash = hash_of_key(key);
  if (!hash) {
    return Error{ErrorCode::kCorruption, doing("a record has a key of another form")};
  }
  std::string opened;
  EMBER_ASSIGN(const std::optional<std::string_view> plain,
               plain_form(options_.sealer.get(), {ValueKind::kRecord, hash->view()}, row, opened));
  if (!plain) return false;
  EMBER_TRY(decode_record(*plain, record));
  if (record.hash == *hash) return true;
  return Error{ErrorCode::kCorruption,
               doing("block " + hash->hex() + " has the record of " + record.hash.hex())};
}

Result<std::vector<std::string_view>> DiskTierImpl::stored_forms(
    const BlockRecord& record, std::span<const std::string> payloads,
    std::vector<std::string>& sealed) const {
  std::vector<std::string_view> forms(payloads.begin(), payloads.end());
  if (options_.sealer == nullptr) return forms;
  sealed.resize(payloads.size());
  for (uint32_t group = 0; group < payloads.size(); ++group) {
    const std::string key = group_key(record.hash, group);
    EMBER_ASSIGN(sealed[group],
                 options_.sealer->seal(record.scope, {ValueKind::kGroup, key}, payloads[group]));
    forms[group] = sealed[group];
  }
  return forms;
}

Result<std::string_view> DiskTierImpl::payload_of(const BlockRecord& record, uint32_t group,
                                                  std::string_view stored,
                                                  std::string& opened) const {
  const std::string key = group_key(record.hash, group);
  EMBER_ASSIGN(const std::optional<std::string_view> payload,
               plain_form(options_.sealer.get(), {ValueKind::kGroup, key}, stored, opened));
  if (!payload) {
    return Error{ErrorCode::kCancelled,
                 doing("block " + record.hash.hex() + " was forgotten with its scope")};
  }
  if (payload->size() == record.groups[group].stored_bytes) return *payload;
  return Error{ErrorCode::kCorruption,
               doing("group " + std::to_string(group) + " of block " + record.hash.hex() + " has " +
                     std::to_string(payload->size()) + " stored bytes, its record says " +
                     std::to_string(record.groups[group].stored_bytes))};
}

}  // namespace ember
