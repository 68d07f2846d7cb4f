// Building beside, and changing places.
#include "store/disk/renewed_folder.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "store/disk/durable_file.h"
#include "store/taken_aside.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

Status rename_path(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  return {ErrorCode::kIo, from + ": cannot be renamed to " + to + ": " + std::strerror(errno)};
}

}  // namespace

Result<std::string> RenewedFolder::begin() {
  std::error_code error;
  fs::remove_all(path(".new"), error);
  if (error) return Error{ErrorCode::kIo, path(".new") + ": " + error.message()};
  EMBER_TRY(make_private_directory(nullptr, path(".new")));
  return path(".new");
}

Status RenewedFolder::put_in_place(const std::string& aside) {
  EMBER_TRY(rename_path(path(".new"), path(".ready")));
  EMBER_TRY(sync_directory(nullptr, store_));
  const Result<bool> finished = finish(aside);
  return finished.ok() ? Status{} : Status(finished.error());
}

Result<bool> RenewedFolder::finish(const std::string& aside) {
  if (!is_there(path(".ready"))) return false;
  if (is_there(path(""))) {
    EMBER_TRY(make_aside_folder(store_, aside));
    EMBER_TRY(rename_path(path(""), aside + "/" + name_));
    EMBER_TRY(sync_directory(nullptr, aside));
  }
  EMBER_TRY(rename_path(path(".ready"), path("")));
  EMBER_TRY(sync_directory(nullptr, store_));
  return true;
}

std::string new_aside_folder(const std::string& store, int64_t unix_us) {
  const auto seconds = static_cast<std::time_t>(unix_us / 1'000'000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char name[32];
  std::strftime(name, sizeof name, "%Y%m%dT%H%M%SZ", &parts);
  const std::string first = taken_aside_folder(store) + "/" + name;
  std::string path = first;
  for (int i = 2; is_there(path); ++i) path = first + "-" + std::to_string(i);
  return path;
}

Status make_aside_folder(const std::string& store, const std::string& aside) {
  EMBER_TRY(make_private_directory(nullptr, store + "/quarantine"));
  EMBER_TRY(make_private_directory(nullptr, taken_aside_folder(store)));
  return make_private_directory(nullptr, aside);
}

}  // namespace ember
