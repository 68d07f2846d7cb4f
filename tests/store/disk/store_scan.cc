// The scan: RocksDB opened for reading, its list of files against the folder, keys against rows.
#include "tests/store/disk/store_scan.h"

#include <rocksdb/db.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "base/bytes.h"
#include "store/disk/disk_format.h"

namespace ember::testing {
namespace {

namespace fs = std::filesystem;

class Silent final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

class OpenDatabase {
 public:
  explicit OpenDatabase(const std::string& folder) {
    rocksdb::DBOptions options;
    options.info_log = std::make_shared<Silent>();
    const rocksdb::ColumnFamilyOptions plain;
    rocksdb::DB* db = nullptr;
    status_ = rocksdb::DB::OpenForReadOnly(
        options, folder, {{rocksdb::kDefaultColumnFamilyName, plain}, {"data", plain}}, &handles_,
        &db);
    db_.reset(db);
  }
  ~OpenDatabase() {
    for (rocksdb::ColumnFamilyHandle* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  }
  rocksdb::DB& db() { return *db_; }
  const rocksdb::Status& status() const { return status_; }
  std::unique_ptr<rocksdb::Iterator> rows(size_t family) {
    return std::unique_ptr<rocksdb::Iterator>(
        db_->NewIterator(rocksdb::ReadOptions(), handles_[family]));
  }

 private:
  rocksdb::Status status_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

void find_orphan_files(rocksdb::DB& db, const std::string& folder,
                       std::vector<std::string>& orphans) {
  std::vector<std::string> live;
  uint64_t manifest_bytes = 0;
  const rocksdb::Status status = db.GetLiveFiles(live, &manifest_bytes, false);
  if (!status.ok()) orphans.push_back("live files: " + status.ToString());
  std::set<std::string> named;
  for (const std::string& name : live) named.insert(fs::path(name).filename().string());
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool payload = name.ends_with(".sst") || name.ends_with(".blob");
    const bool manifest = name.starts_with("MANIFEST-") || name.ends_with("tmp");
    const bool log = name.ends_with(".log") && entry.file_size() > 0;
    if (((payload || manifest) && !named.contains(name)) || log) {
      orphans.push_back(name + ": nothing names it");
    }
  }
}

}  // namespace

std::vector<std::string> orphans_of(const std::string& blocks_folder) {
  std::vector<std::string> orphans;
  OpenDatabase database(blocks_folder);
  if (!database.status().ok()) return {database.status().ToString()};
  find_orphan_files(database.db(), blocks_folder, orphans);

  std::map<uint32_t, uint64_t> said;
  const auto meta = database.rows(0);
  const std::string first(1, static_cast<char>(MetaKind::kEpoch));
  for (meta->Seek(first); meta->Valid() && meta->key()[0] == first[0]; meta->Next()) {
    const std::string key = meta->key().ToString();
    const auto row = decode_epoch(key, meta->value().ToStringView());
    if (!row) orphans.push_back("an epoch's row is damaged");
    if (row) said[*epoch_of_key(key)] = row->bytes;
  }
  std::map<uint32_t, uint64_t> there;
  const auto data = database.rows(1);
  for (data->SeekToFirst(); data->Valid(); data->Next()) {
    if (data->key() == data_floor_key()) continue;
    const uint32_t epoch = __builtin_bswap32(load_unaligned<uint32_t>(data->key().data()));
    there[epoch] += data->value().size();
  }
  if (!data->status().ok()) orphans.push_back("data: " + data->status().ToString());
  for (const auto& [epoch, bytes] : there) {
    const std::string what = "epoch " + std::to_string(epoch) + ": " + std::to_string(bytes) +
                             " bytes of payload, ";
    if (!said.contains(epoch)) {
      orphans.push_back(what + "no row");
    } else if (said[epoch] < bytes) {
      orphans.push_back(what + "its row says " + std::to_string(said[epoch]));
    }
  }
  return orphans;
}

}  // namespace ember::testing
