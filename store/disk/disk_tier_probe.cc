// Disk tier: the probe at start-up. What could not be written, or does not come back, is known
// before the first request relies on it.
#include <memory>
#include <vector>

#include "base/clock.h"
#include "store/disk/disk_tier_impl.h"
#include "store/disk/rocksdb_status.h"

namespace ember {
namespace {

constexpr const char* kProbeName = "PROBE";
constexpr uint32_t kProbeTokens = 1024;
// Epochs count from 1, so no block ever has these keys.
constexpr uint32_t kProbeEpoch = 0;
constexpr char kProbeKind = 'p';

// A block record as all others are, of no namespace.
BlockRecord probe_record() {
  BlockRecord record;
  const auto now = static_cast<uint64_t>(system_clock().unix_us());
  record.tokens.resize(kProbeTokens);
  uint64_t bits = now;
  for (TokenId& token : record.tokens) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    token = static_cast<TokenId>(bits >> 40);
  }
  std::string seed;
  append_value(seed, now);
  record.hash = digest128(as_bytes(seed));
  return record;
}

}  // namespace

Status DiskTierImpl::probe() {
  EMBER_TRY(check_writable());
  const BlockRecord record = probe_record();
  const std::string value = encode_record(record);
  EMBER_TRY(probe_files(value));
  return probe_database(record.hash, value);
}

// A file of its own, synced, and read from the drive rather than from the system's cache.
Status DiskTierImpl::probe_files(const std::string& value) {
  const std::string path = options_.directory + "/" + kProbeName;
  const rocksdb::FileOptions files;
  const rocksdb::IOOptions io;
  rocksdb::IOStatus status;
  {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    status = seam_.files->NewWritableFile(path, files, &file, nullptr);
    if (status.ok()) status = file->Append(value, io, nullptr);
    if (status.ok()) status = file->Sync(io, nullptr);
    if (status.ok()) status = file->Close(io, nullptr);
  }
  std::string back(value.size() + 1, '\0');
  rocksdb::Slice read;
  if (status.ok()) {
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    status = seam_.files->NewRandomAccessFile(path, files, &file, nullptr);
    if (status.ok()) file->InvalidateCache(0, 0).PermitUncheckedError();
    if (status.ok()) status = file->Read(0, back.size(), io, &read, back.data(), nullptr);
  }
  const rocksdb::IOStatus removed = seam_.files->DeleteFile(path, io, nullptr);
  if (status.ok()) status = removed;
  if (!status.ok()) return rocksdb_error(status, doing("the start-up probe"));
  if (read.ToStringView() == value) return {};
  return {ErrorCode::kCorruption,
          doing("the start-up probe: a record of " + std::to_string(value.size()) +
                " bytes came back changed (" + std::to_string(read.size()) +
                " bytes): the drive is not to be trusted")};
}

// Through both families, in memory only: a key that is put and deleted once leaves no file.
Status DiskTierImpl::probe_database(const BlockHash& hash, const std::string& value) {
  const std::string key = data_key(kProbeEpoch, hash, 0);
  const std::string meta_key = std::string(1, kProbeKind) + std::string(hash.view());
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  rocksdb::WriteBatch put;
  put.Put(data_, key, value);
  put.Put(meta_, meta_key, value);
  rocksdb::Status status = db_->Write(options, &put);
  std::string data_back, meta_back;
  if (status.ok()) status = db_->Get(rocksdb::ReadOptions(), data_, key, &data_back);
  if (status.ok()) status = db_->Get(rocksdb::ReadOptions(), meta_, meta_key, &meta_back);
  rocksdb::WriteBatch erase;
  erase.SingleDelete(data_, key);
  erase.SingleDelete(meta_, meta_key);
  if (status.ok()) status = db_->Write(options, &erase);
  if (!status.ok()) return rocksdb_error(status, doing("the start-up probe"));
  if (data_back == value && meta_back == value) return {};
  return {ErrorCode::kCorruption, doing("the start-up probe: a record came back changed")};
}

}  // namespace ember
