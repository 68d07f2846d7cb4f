// Looking at each file of a database by itself.
#include "store/disk/database_files.h"

#include <rocksdb/sst_file_reader.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "store/disk/rocksdb_log_check.h"
#include "store/disk/rocksdb_seam.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::vector<std::string> broken_files(const std::string& folder) {
  LimitedFileSystemOptions files;
  files.root = folder;
  files.read_only = true;
  const Seam seam = make_seam(files, nullptr);
  rocksdb::Options options;
  options.env = seam.env.get();
  const std::string manifest = first_line(folder + "/CURRENT");
  std::vector<std::string> broken;
  std::error_code error;
  if (!manifest.starts_with("MANIFEST-") || !fs::exists(folder + "/" + manifest, error)) {
    broken.push_back("CURRENT");
  }
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    bool good = true;
    if (name.ends_with(".sst")) {
      rocksdb::SstFileReader reader(options);
      good = reader.Open(it->path().string()).ok() && reader.VerifyChecksum().ok();
    } else if (name.ends_with(".log") || name == manifest) {
      good = log_file_is_whole(it->path().string());
    }
    if (!good) broken.push_back(name);
  }
  return broken;
}

}  // namespace ember
