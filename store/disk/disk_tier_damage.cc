// Disk tier: what is wrong as it was found, going over all records in order, and proof before a
// block is written a second time.
#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "store/codec.h"
#include "store/disk/disk_tier_impl.h"
#include "store/disk/rocksdb_status.h"

namespace ember {
namespace {

rocksdb::ReadOptions proven_reads() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

// RocksDB says that a value in a blob file is wrong; the table that names it was right.
bool blob_is_damaged(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  const bool blob = text.find("Blob") != std::string::npos ||
                    text.find("reading blob") != std::string::npos;
  return status.IsCorruption() && blob && text.find(".sst") == std::string::npos;
}

BlockHash last_hash() {
  BlockHash hash;
  hash.bytes.fill(0xff);
  return hash;
}

uint32_t first_number(const BlockHash& hash) {
  return __builtin_bswap32(load_unaligned<uint32_t>(hash.bytes.data()));
}

}  // namespace

// Unproven reads reach only the bytes of a value whose place was proven just before: RocksDB's
// decoders never see a damaged table.
std::optional<std::string> DiskTierImpl::payload_as_found(const BlockRecord& record,
                                                          uint32_t group) {
  const std::string key = data_key(record.epoch, record.hash, group);
  std::string payload;
  rocksdb::Status status = db_->Get(proven_reads(), data_, key, &payload);
  if (blob_is_damaged(status)) {
    rocksdb::ReadOptions as_found;
    as_found.verify_checksums = false;
    status = db_->Get(as_found, data_, key, &payload);
  }
  if (!status.ok()) return std::nullopt;
  return payload;
}

Result<std::optional<FoundRecord>> DiskTierImpl::read_as_found(const BlockHash& hash) {
  std::shared_lock hold(db_mutex_);
  if (db_ == nullptr) return Error{ErrorCode::kIo, doing("closed: " + seam_.health->text())};
  FoundRecord found;
  const rocksdb::Status status =
      db_->Get(proven_reads(), meta_, block_key(hash), &found.record);
  if (status.IsNotFound()) return std::optional<FoundRecord>();
  if (!status.ok()) found.record.clear();
  // Opened only to know which groups there are: what is kept is sealed as it was.
  const Result<std::optional<BlockRecord>> record = record_of(block_key(hash), found.record);
  const bool known = record.ok() && record->has_value();
  for (uint32_t group = 0; known && group < (*record)->groups.size(); ++group) {
    found.groups.push_back(payload_as_found(**record, group));
  }
  return std::optional<FoundRecord>(std::move(found));
}

Result<DiskTier::Scan> DiskTierImpl::records_after(const std::optional<BlockHash>& after,
                                                   size_t most) {
  std::shared_lock hold(db_mutex_);
  if (db_ == nullptr) return Error{ErrorCode::kIo, doing("closed: " + seam_.health->text())};
  rocksdb::ReadOptions options = proven_reads();
  options.fill_cache = false;
  Scan scan;
  BlockHash last = after.value_or(BlockHash{});
  std::string from = after ? block_key(*after) + '\0' : std::string(1, 'b');
  uint32_t tried = 0;  // no gap is looked at twice
  while (true) {
    std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options, meta_));
    for (it->Seek(from); it->Valid() && it->key()[0] == 'b'; it->Next()) {
      const std::optional<BlockHash> hash = hash_of_key(it->key().ToStringView());
      if (!hash) continue;
      if (scan.records.size() == most) return scan;
      if (scan.gap && scan.gap->second == last_hash()) scan.gap->second = *hash;
      Result<std::optional<BlockRecord>> record =
          record_of(it->key().ToStringView(), it->value().ToStringView());
      if (!record.ok()) {
        scan.records.emplace_back(*hash, record.error());
      } else if (*record) {  // else forgotten, and no damage
        scan.records.emplace_back(*hash, std::move(**record));
      }
      last = *hash;
    }
    scan.ended = it->status().ok();
    if (scan.ended) return scan;
    // One gap at a time: the next call goes on from here.
    if (scan.gap && scan.gap->second != last_hash()) return scan;
    // A damaged table block hides some keys: look for the first one behind it.
    if (!scan.gap) scan.gap = {last, last_hash()};
    tried = std::max(tried, first_number(last));
    const std::optional<uint32_t> next = readable_from(*db_, meta_, MetaKind::kBlock, tried);
    if (!next) {
      scan.ended = true;
      return scan;
    }
    tried = *next;
    from = number_key(MetaKind::kBlock, tried);
  }
}

// The metadata value and every payload, decoded and compared with its checksum.
Status DiskTierImpl::read_proven(const BlockHash& hash, BlockRecord& record,
                                 std::vector<std::string>& payloads) {
  payloads.clear();
  EMBER_ASSIGN(std::optional<BlockRecord> found, read_record(hash));
  if (!found) return Error{ErrorCode::kCorruption, doing("block " + hash.hex() + " is gone")};
  record = std::move(*found);
  std::vector<std::byte> raw;
  for (uint32_t group = 0; group < record.groups.size(); ++group) {
    rocksdb::PinnableSlice payload;
    EMBER_TRY(read_payload(record, group, payload));
    raw.resize(record.groups[group].raw_bytes);
    EMBER_TRY(prove_payload(record, group, payload.ToStringView(), raw));
    payloads.emplace_back(payload.ToStringView());
  }
  return {};
}

void DiskTierImpl::lose_block(const BlockHash& hash, const Error& why) {
  if (options_.set_aside) {
    Result<std::optional<FoundRecord>> found = read_as_found(hash);
    if (found.ok() && found->has_value()) {
      const Result<std::optional<BlockRecord>> record =
          record_of(block_key(hash), (*found)->record);
      options_.set_aside({hash, record.ok() && *record ? (*record)->position : 0, false,
                          why.message + " (found when its epoch was retired)",
                          std::move(**found)});
    }
  }
  MutexLock lock(state_mutex_);
  forget_block(hash);
  lost_.push_back(hash);
}

std::vector<BlockHash> DiskTierImpl::take_lost() {
  MutexLock lock(state_mutex_);
  return std::exchange(lost_, {});
}

}  // namespace ember
