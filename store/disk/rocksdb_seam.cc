// RocksDB seam: the parts of RocksDB's set-up that both databases share.
#include "store/disk/rocksdb_seam.h"

#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "store/disk/ballast.h"
#include "store/disk/rocksdb_log_check.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFlushLooks = 30'000;  // of 1 ms, at what RocksDB has begun to flush
constexpr int kLooksAFlush = 500;

// RocksDB's log would be one more file to bound; what matters reaches us as a status.
class SilentLogger final : public rocksdb::Logger {
 public:
  SilentLogger() : Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

bool can_read_whole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::vector<char> buffer(1 << 20);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) continue;
  return file.eof() && !file.bad();
}

bool table_is_right(const fs::path& path, const rocksdb::Options& options) {
  rocksdb::SstFileReader reader(options);
  return reader.Open(path.string()).ok() && reader.VerifyChecksum().ok();
}

void add(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

}  // namespace

void HealthBoard::OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* status) {
  report(*status);
}

void HealthBoard::OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                                       bool* auto_recovery) {
  *auto_recovery = false;
}

void HealthBoard::OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) {
  if (info.new_bg_error.ok()) clear();
}

void HealthBoard::report(const rocksdb::Status& error) {
  MutexLock lock(mutex_);
  if (error_.ok()) error_ = error;
}

void HealthBoard::clear() {
  MutexLock lock(mutex_);
  error_ = rocksdb::Status();
}

rocksdb::Status HealthBoard::error() const {
  MutexLock lock(mutex_);
  return error_;
}

std::string HealthBoard::text() const {
  MutexLock lock(mutex_);
  return error_.ok() ? "" : error_.ToString();
}

Seam make_seam(const LimitedFileSystemOptions& options,
               const std::shared_ptr<rocksdb::FileSystem>& base) {
  Seam seam;
  auto below = base != nullptr ? base : rocksdb::FileSystem::Default();
  seam.files = std::make_shared<LimitedFileSystem>(below, options);
  seam.env = rocksdb::NewCompositeEnv(seam.files);
  seam.health = std::make_shared<HealthBoard>();
  return seam;
}

rocksdb::DBOptions common_options(const Seam& seam, const LimitedFileSystemOptions& options) {
  rocksdb::DBOptions out;
  out.env = seam.env.get();
  out.listeners.push_back(seam.health);
  out.info_log = std::make_shared<SilentLogger>();
  out.stats_dump_period_sec = 0;
  out.stats_persist_period_sec = 0;
  out.skip_stats_update_on_db_open = true;
  out.allow_fallocate = false;
  out.max_open_files = 512;
  out.max_background_jobs = 2;
  out.max_manifest_file_size =
      std::clamp<uint64_t>(options.limit_bytes / 128, 64u << 10, 4u << 20);
  // Inspection does without: its files may lie where no unnamed file can be made to try.
  bool direct = !options.read_only && direct_io_works(options.root);
  out.use_direct_reads = direct;
  out.use_direct_io_for_flush_and_compaction = direct;
  out.compaction_readahead_size = 256u << 10;
  out.create_if_missing = !options.read_only && may_create_database(options.root);
  out.create_missing_column_families = !options.read_only;
  return out;
}

rocksdb::Status flush_families(rocksdb::DB& db,
                               const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                               const HealthBoard& health) {
  rocksdb::FlushOptions options;
  options.wait = true;
  options.allow_write_stall = true;
  for (int look = 0; look < kMostFlushLooks; ++look) {
    // Once more from time to time: what failed and was not scheduled again would wait for ever.
    if (look % kLooksAFlush == 0) {
      const rocksdb::Status status = db.Flush(options, families);
      if (!status.ok()) return status;
    }
    uint64_t waiting = 0;
    for (rocksdb::ColumnFamilyHandle* family : families) {
      uint64_t tables = 0;
      db.GetIntProperty(family, rocksdb::DB::Properties::kNumImmutableMemTable, &tables);
      waiting += tables;
    }
    if (waiting == 0) return rocksdb::Status();
    const rocksdb::Status error = health.error();
    if (!error.ok()) return error;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return rocksdb::Status::TimedOut("a flush did not end");
}

bool may_create_database(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    std::string extension = entry.path().extension().string();
    std::error_code gone;
    if (extension == ".sst" || extension == ".blob") return false;
    if (extension == ".log" && entry.file_size(gone) > 0) return false;
  }
  return true;
}

void remove_unfinished_files(LimitedFileSystem& files, const std::string& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    std::string extension = entry.path().extension().string();
    if (extension != ".dbtmp" && extension != ".tmp") continue;
    static_cast<void>(files.DeleteFile(entry.path().string(), rocksdb::IOOptions(), nullptr));
  }
}

std::vector<std::string> unreadable_files(rocksdb::DB& db, const std::string& directory,
                                          const rocksdb::Options& table_options) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    std::string name = entry.path().filename().string();
    if (name == kBallastName) continue;  // holds nothing
    if (!can_read_whole(entry.path())) add(names, name);
    if (name.starts_with("MANIFEST-") && !log_file_is_whole(entry.path().string())) {
      add(names, name);
    }
  }
  if (error) add(names, directory);
  std::vector<rocksdb::LiveFileMetaData> tables;
  db.GetLiveFilesMetaData(&tables);
  for (const rocksdb::LiveFileMetaData& table : tables) {
    fs::path path = fs::path(directory) / table.relative_filename;
    if (!table_is_right(path, table_options)) add(names, table.relative_filename);
  }
  std::vector<rocksdb::ColumnFamilyMetaData> families;
  db.GetAllColumnFamilyMetaData(&families);
  for (const rocksdb::ColumnFamilyMetaData& family : families) {
    for (const rocksdb::BlobMetaData& blob : family.blob_files) {
      fs::path path = fs::path(directory) / fs::path(blob.blob_file_name).filename();
      std::error_code missing;
      uint64_t size = fs::file_size(path, missing);
      if (missing || size < blob.blob_file_size) add(names, path.filename().string());
    }
  }
  return names;
}

}  // namespace ember
