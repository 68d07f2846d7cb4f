// Key file: reading and making it.
#include "store/disk/key_file.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "store/disk/durable_file.h"
#include "store/disk/private_file.h"
#include "store/encryption.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kForm = "emberkv-master-key-1 ";
constexpr size_t kDigits = 2 * kSecretKeyBytes;
constexpr size_t kFileBytes = kForm.size() + kDigits + 1;

Error refused(const std::string& path, const std::string& what) {
  return {ErrorCode::kInvalidArgument, "key file " + path + ": " + what};
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool parse_key(std::string_view text, SecretKey& key) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (text.size() != kForm.size() + kDigits || !text.starts_with(kForm)) return false;
  text.remove_prefix(kForm.size());
  for (size_t i = 0; i < kSecretKeyBytes; ++i) {
    const int high = digit_value(text[2 * i]), low = digit_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    key.bytes()[i] = static_cast<unsigned char>(16 * high + low);
  }
  return true;
}

void format_key(const SecretKey& key, char (&text)[kFileBytes]) {
  constexpr char kHex[] = "0123456789abcdef";
  std::memcpy(text, kForm.data(), kForm.size());
  char* out = text + kForm.size();
  for (char byte : key.view()) {
    const auto value = static_cast<unsigned char>(byte);
    *out++ = kHex[value >> 4];
    *out++ = kHex[value & 15];
  }
  *out = '\n';
}

}  // namespace

Result<SecretKey> load_key_file(const std::string& path) {
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    const std::string why = errno == ENOENT ? "it is missing" : std::strerror(errno);
    return refused(path, why + "; an encrypted store opens with the key it was made with only");
  }
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return refused(path, "not a file");
  }
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return refused(path, "other users can reach it; close it with: chmod 600 " + path);
  }
  char text[kFileBytes + 1];
  const ssize_t size = ::read(file.fd(), text, sizeof text);
  SecretKey key;
  const bool good =
      size > 0 && parse_key(std::string_view(text, static_cast<size_t>(size)), key);
  wipe(text, sizeof text);
  if (!good) {
    return refused(path, "expected one line, '" + std::string(kForm) + "' and " +
                             std::to_string(kDigits) + " hexadecimal digits");
  }
  return key;
}

Status make_key_file(const std::string& path) {
  std::vector<fs::path> made;
  EMBER_TRY(make_folders(fs::absolute(path).lexically_normal().parent_path(), "a key file", made));
  const std::string fresh = path + ".new";
  char text[kFileBytes];
  format_key(SecretKey::random(), text);
  Status status = write_durable_file(nullptr, fresh, std::string_view(text, sizeof text));
  wipe(text, sizeof text);
  // A link and no renaming: a key that someone else has just made there must stay.
  if (status.ok() && ::link(fresh.c_str(), path.c_str()) != 0 && errno != EEXIST) {
    status = system_error("key file " + path, "cannot be made", errno);
  }
  ::unlink(fresh.c_str());
  EMBER_TRY(status);
  return sync_directory(nullptr, directory_of(path));
}

Status refuse_key_inside(const std::string& path, const std::string& store) {
  std::error_code error;
  const fs::path key = fs::weakly_canonical(fs::absolute(path), error);
  const fs::path inside = key.lexically_relative(fs::weakly_canonical(fs::absolute(store), error));
  if (inside.empty() || *inside.begin() == "..") return {};
  return refused(path, "it lies in the store's own folder; keep it outside of " + store);
}

std::string default_key_file() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  // The specification says to ignore a relative path.
  if (config != nullptr && config[0] == '/') return std::string(config) + "/emberkv/master.key";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] == '\0') {
    const struct passwd* user = ::getpwuid(::getuid());
    home = user != nullptr ? user->pw_dir : "/";
  }
  return std::string(home) + "/.config/emberkv/master.key";
}

}  // namespace ember
