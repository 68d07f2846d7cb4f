// Torn logs: each file read whole (they are small), judged, and cut where it is torn.
#include "store/disk/torn_logs.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "store/disk/private_file.h"
#include "store/disk/rocksdb_log_check.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

// A manifest that CURRENT does not name was never synced, or is not needed any more.
std::string current_manifest(const std::string& directory) {
  std::ifstream file(directory + "/CURRENT");
  std::string name;
  std::getline(file, name);
  return name;
}

Status mend(const BaseFileSystem& files, const fs::path& path, bool may_write) {
  Result<std::string> read = read_small_file(path.string(), SIZE_MAX);
  if (!read.ok()) return {ErrorCode::kIo, path.string() + ": cannot be read"};
  std::string bytes = std::move(read).value();
  LogVerdict verdict = check_log(bytes, log_kind(path.filename().string()));
  if (verdict.state == LogVerdict::kDamaged) {
    return {ErrorCode::kCorruption,
            path.string() + ": a record of it is damaged; the file was left as it is"};
  }
  if (verdict.state == LogVerdict::kWhole || !may_write) return {};
  bytes.resize(verdict.synced_bytes);
  return write_durable_file(files, path.string(), bytes);
}

}  // namespace

Status mend_torn_logs(const BaseFileSystem& files, const std::string& directory, bool may_write) {
  std::string manifest = current_manifest(directory);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    std::string name = entry.path().filename().string();
    if (!name.ends_with(".log") && name != manifest) continue;
    EMBER_TRY(mend(files, entry.path(), may_write));
  }
  if (error) return {ErrorCode::kIo, directory + ": cannot be listed: " + error.message()};
  return {};
}

}  // namespace ember
