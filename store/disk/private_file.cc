// Private file: modes and folders.
#include "store/disk/private_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "store/disk/durable_file.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

std::string octal(mode_t mode) {
  std::string digits = "0";
  for (int shift : {6, 3, 0}) digits.push_back(static_cast<char>('0' + ((mode >> shift) & 7)));
  return digits;
}

}  // namespace

Error system_error(const std::string& path, const char* what, int code) {
  ErrorCode kind = code == ENOSPC || code == EDQUOT ? ErrorCode::kCapacity : ErrorCode::kIo;
  return {kind, path + ": " + what + ": " + std::strerror(code)};
}

Result<std::string> read_small_file(const std::string& path, size_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return system_error(path, "cannot be read", errno);
  std::string bytes, piece(4096, '\0');
  while (bytes.size() <= most_bytes &&
         (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) ||
          file.gcount() > 0)) {
    bytes.append(piece, 0, static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) return Error{ErrorCode::kCorruption, path + ": damaged: it cannot be read"};
  return bytes;
}

Status make_folders(const fs::path& path, const char* what, std::vector<fs::path>& made) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  if (path.has_parent_path() && path.parent_path() != path) {
    EMBER_TRY(make_folders(path.parent_path(), what, made));
  }
  if (::mkdir(path.c_str(), 0700) != 0 || ::chmod(path.c_str(), 0700) != 0) {
    const std::string cannot = std::string(what) + " cannot be made there";
    return system_error(path.string(), cannot.c_str(), errno);
  }
  made.push_back(path);
  // Where its parent cannot be opened the system decides when the name is durable.
  static_cast<void>(sync_directory(nullptr, directory_of(path.string())).ok());
  return {};
}

std::string open_to_others(const std::string& path) {
  uint64_t count = 0;
  std::string first;
  const auto look = [&](const std::string& name) {
    struct stat info {};
    if (::lstat(name.c_str(), &info) != 0 || S_ISLNK(info.st_mode)) return;
    if ((info.st_mode & kOthers) == 0) return;
    if (count++ == 0) first = name + " (mode " + octal(info.st_mode) + ")";
  };
  look(path);
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    look(it->path().string());
  }
  if (count == 0) return {};
  return first + (count > 1 ? " and " + std::to_string(count - 1) + " more" : "") +
         " can be reached by other users; close with: chmod -R go= " + path;
}

}  // namespace ember
