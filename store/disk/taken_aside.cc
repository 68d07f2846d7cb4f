// Listing and removing what was taken aside.
#include "store/taken_aside.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace ember {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::string taken_aside_folder(const std::string& store) {
  return store + "/quarantine/taken-aside";
}

std::vector<TakenAside> list_taken_aside(const std::string& store) {
  std::vector<TakenAside> files;
  const fs::path folder = taken_aside_folder(store);
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    struct stat status {};
    if (::lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    files.push_back({it->path().lexically_relative(folder).string(),
                     static_cast<uint64_t>(status.st_size),
                     int64_t{status.st_mtim.tv_sec} * 1'000'000 + status.st_mtim.tv_nsec / 1000});
  }
  std::sort(files.begin(), files.end(),
            [](const TakenAside& a, const TakenAside& b) { return a.file < b.file; });
  return files;
}

Result<bool> remove_taken_aside(const std::string& store, const std::string& file) {
  const std::vector<TakenAside> files = list_taken_aside(store);
  const bool known = std::any_of(files.begin(), files.end(),
                                 [&file](const TakenAside& one) { return one.file == file; });
  if (!known) return false;
  const fs::path folder = taken_aside_folder(store);
  std::error_code error;
  fs::remove(folder / file, error);
  if (error) return Error{ErrorCode::kIo, (folder / file).string() + ": " + error.message()};
  // Folders that hold something stay.
  for (fs::path above = fs::path(file).parent_path(); !above.empty(); above = above.parent_path()) {
    if (!fs::remove(folder / above, error)) break;
  }
  fs::remove(folder, error);
  return true;
}

}  // namespace ember
