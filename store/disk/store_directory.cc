// Store directory: making a store, holding it, and reading what it is.
#include "store/store_directory.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "store/disk/durable_file.h"
#include "store/disk/open_parts.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

// IDENTITY: magic "EMBS" 4, version 4, secret 192, XXH3-64 of all before it 8.
constexpr uint32_t kIdentityMagic = 0x53424d45;
constexpr size_t kLargestIdentity = 1u << 16;
constexpr const char* kIdentityName = "IDENTITY";
constexpr const char* kUnfinishedName = "IDENTITY.tmp";
constexpr const char* kLockName = "LOCK";
constexpr const char* kOwnFolders[] = {"blocks", "conversations"};
// RocksDB writes a manifest and an options file to open: less room than this and it cannot.
constexpr uint64_t kLeastFreeBytes = 64u << 10;

class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

Error system_error(const std::string& path, const char* what, int code) {
  ErrorCode kind = code == ENOSPC || code == EDQUOT ? ErrorCode::kCapacity : ErrorCode::kIo;
  return {kind, path + ": " + what + ": " + std::strerror(code)};
}

std::string encode_identity(const HashSecret& secret) {
  std::string bytes;
  append_value(bytes, kIdentityMagic);
  append_value(bytes, kStoreVersion);
  append_value(bytes, secret);
  append_value(bytes, checksum64(as_bytes(bytes)));
  return bytes;
}

// What follows the magic. The checksum is the last field of every version, so that damage is told
// from another version.
Result<std::string_view> proven_identity(const std::string& path, std::string_view bytes) {
  Error damaged{ErrorCode::kCorruption, path + ": damaged: its checksum does not agree"};
  if (bytes.size() < 16 || bytes.size() > kLargestIdentity) {
    damaged.message = path + ": damaged: " + std::to_string(bytes.size()) + " bytes, expected " +
                      std::to_string(16 + kHashSecretBytes);
    return damaged;
  }
  std::string_view body = bytes.substr(0, bytes.size() - 8);
  if (checksum64(as_bytes(body)) != load_unaligned<uint64_t>(body.data() + body.size())) {
    return damaged;
  }
  if (load_unaligned<uint32_t>(body.data()) != kIdentityMagic) {
    return Error{ErrorCode::kInvalidArgument, path + ": not the identity of a store"};
  }
  return body.substr(sizeof kIdentityMagic);
}

Result<HashSecret> decode_identity(const std::string& path, std::string_view bytes) {
  EMBER_ASSIGN(std::string_view body, proven_identity(path, bytes));
  ByteReader reader(body);
  auto version = reader.read<uint32_t>();
  if (version != kStoreVersion) {
    return Error{ErrorCode::kUnsupported, path + ": the store has version " +
                                              std::to_string(version) + ", this program reads " +
                                              std::to_string(kStoreVersion)};
  }
  auto secret = reader.read<HashSecret>();
  if (!reader.finished()) {
    return Error{ErrorCode::kCorruption, path + ": damaged: " + std::to_string(bytes.size()) +
                                             " bytes, expected " +
                                             std::to_string(16 + kHashSecretBytes)};
  }
  return secret;
}

Result<std::string> identity_bytes(const std::string& store) {
  std::string path = store + "/" + kIdentityName;
  std::ifstream file(path, std::ios::binary);
  if (!file) return system_error(path, "cannot be read", errno);
  std::string bytes(kLargestIdentity + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad()) return Error{ErrorCode::kCorruption, path + ": damaged: it cannot be read"};
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

Result<HashSecret> read_identity(const std::string& store) {
  EMBER_ASSIGN(std::string bytes, identity_bytes(store));
  return decode_identity(store + "/" + kIdentityName, bytes);
}

Status draw_secret(HashSecret& secret) {
  size_t filled = 0;
  while (filled < secret.size()) {
    ssize_t got = ::getrandom(secret.data() + filled, secret.size() - filled, 0);
    if (got < 0 && errno != EINTR) return system_error("getrandom", "no secret", errno);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return {};
}

// After a crash there is a whole identity or none.
Status write_identity(const std::string& store, const BaseFileSystem& base,
                      const HashSecret& secret) {
  return write_durable_file(base, store + "/" + kIdentityName, encode_identity(secret));
}

// A lock of the open file, not of the process: another opening in this process is refused too, and
// a killed holder leaves nothing behind.
struct flock whole_file_lock() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

int pid_in(const File& lock) {
  char text[32] = {};
  ssize_t size = ::pread(lock.fd(), text, sizeof text - 1, 0);
  return size > 0 ? static_cast<int>(std::strtol(text, nullptr, 10)) : 0;
}

// The pid of the process that holds the lock, 0 when none does.
int find_holder(const std::string& store) {
  File file(::open((store + "/" + kLockName).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return 0;
  struct flock lock = whole_file_lock();
  if (::fcntl(file.fd(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
  return pid_in(file);
}

bool means_read_only(int code) {
  return code == EROFS || code == EACCES || code == EPERM || code == ENOSPC || code == EDQUOT;
}

struct Lock {
  File file;
  bool read_only = false;  // nothing can be written there
};

Result<Lock> take_lock(const std::string& store) {
  std::string path = store + "/" + kLockName;
  Lock taken;
  taken.file = File(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!taken.file.is_open()) {
    if (!means_read_only(errno)) return system_error(path, "cannot be opened", errno);
    taken.read_only = true;
    return taken;
  }
  struct flock lock = whole_file_lock();
  if (::fcntl(taken.file.fd(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return system_error(path, "cannot be locked", errno);
    return Error{ErrorCode::kBusy,
                 store + ": the store is held by process " + std::to_string(pid_in(taken.file))};
  }
  std::string pid = std::to_string(::getpid()) + "\n";
  // For people; the lock holds without it.
  if (::ftruncate(taken.file.fd(), 0) == 0) {
    static_cast<void>(::pwrite(taken.file.fd(), pid.data(), pid.size(), 0) == 0);
  }
  taken.read_only = ::access(store.c_str(), W_OK) != 0;
  return taken;
}

enum class FolderKind { kAbsent, kFresh, kStore, kLostIdentity, kForeign };

// Fresh: empty, or what a creation that was cut short left behind.
Result<FolderKind> look_at(const std::string& path) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return FolderKind::kAbsent;
  if (error) return system_error(path, "cannot be opened", error.value());
  if (status.type() != fs::file_type::directory) {
    return Error{ErrorCode::kInvalidArgument, path + ": not a folder"};
  }
  bool fresh = true, ours = false;
  fs::directory_iterator it(path, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name == kIdentityName) return FolderKind::kStore;
    if (std::find(std::begin(kOwnFolders), std::end(kOwnFolders), name) != std::end(kOwnFolders)) {
      ours = true;
    }
    if (name != kLockName && name != kUnfinishedName) fresh = false;
  }
  if (error) return system_error(path, "cannot be listed", error.value());
  if (fresh) return FolderKind::kFresh;
  return ours ? FolderKind::kLostIdentity : FolderKind::kForeign;
}

// Makes a folder and its missing parents, 0700; adds those it made to `made`, outermost first.
Status make_folders(const fs::path& path, std::vector<fs::path>& made) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  if (path.has_parent_path() && path.parent_path() != path) {
    EMBER_TRY(make_folders(path.parent_path(), made));
  }
  if (::mkdir(path.c_str(), 0700) != 0) {
    return system_error(path.string(), "a new store cannot be made there", errno);
  }
  made.push_back(path);
  // Where its parent cannot be opened the system decides when the name is durable.
  static_cast<void>(sync_directory(nullptr, directory_of(path.string())));
  return {};
}

class StoreDirectoryImpl final : public StoreDirectory {
 public:
  const std::string& path() const override { return path_; }
  const HashSecret& secret() const override { return secret_; }
  bool created() const override { return created_; }
  bool read_only() const override { return read_only_; }
  int holder_pid() const override { return holder_pid_; }
  void discard() override;

  std::string path_;
  HashSecret secret_{};
  bool created_ = false;
  bool read_only_ = false;
  int holder_pid_ = 0;
  File lock_;
  std::vector<fs::path> made_;  // folders, outermost first
};

void StoreDirectoryImpl::discard() {
  std::error_code ignored;
  for (const char* name : kOwnFolders) fs::remove_all(fs::path(path_) / name, ignored);
  for (const char* name : {kUnfinishedName, kIdentityName, kLockName}) {
    fs::remove(fs::path(path_) / name, ignored);
  }
  for (auto it = made_.rbegin(); it != made_.rend(); ++it) fs::remove(*it, ignored);
}

using Opened = Result<std::unique_ptr<StoreDirectory>>;

Status refuse_foreign(const std::string& path, FolderKind kind) {
  if (kind == FolderKind::kForeign) {
    return {ErrorCode::kInvalidArgument,
            path + ": not a store: it has files but no IDENTITY; choose an empty or new folder"};
  }
  if (kind == FolderKind::kLostIdentity) {
    return {ErrorCode::kCorruption, path + ": the store's IDENTITY is missing"};
  }
  return {};
}

Status fill_new_store(StoreDirectoryImpl& store, const BaseFileSystem& base) {
  EMBER_ASSIGN(Lock lock, take_lock(store.path_));
  if (lock.read_only) {
    return {ErrorCode::kIo, store.path_ + ": a new store cannot be made there: no permission"};
  }
  // Someone else may have made it between our look and the lock.
  EMBER_ASSIGN(FolderKind kind, look_at(store.path_));
  if (kind == FolderKind::kStore) {
    EMBER_ASSIGN(store.secret_, read_identity(store.path_));
  } else {
    EMBER_TRY(draw_secret(store.secret_));
    EMBER_TRY(write_identity(store.path_, base, store.secret_));
    store.created_ = true;
  }
  store.lock_ = std::move(lock.file);
  return {};
}

Opened make_store(const std::string& path, const BaseFileSystem& base) {
  auto store = std::make_unique<StoreDirectoryImpl>();
  store->path_ = path;
  Status status = make_folders(fs::absolute(path).lexically_normal(), store->made_);
  if (status.ok()) status = fill_new_store(*store, base);
  if (status.ok()) return std::unique_ptr<StoreDirectory>(std::move(store));
  if (status.error().code != ErrorCode::kBusy) store->discard();
  return status.error();
}

}  // namespace

Opened StoreDirectory::open(const std::string& path) { return open_store_directory(path, nullptr); }

Opened open_store_directory(const std::string& path, const BaseFileSystem& base) {
  EMBER_ASSIGN(FolderKind kind, look_at(path));
  EMBER_TRY(refuse_foreign(path, kind));
  if (kind != FolderKind::kStore) return make_store(path, base);
  auto store = std::make_unique<StoreDirectoryImpl>();
  store->path_ = path;
  // First what it is: a store of another version is left as it was, its lock too.
  EMBER_ASSIGN(store->secret_, read_identity(path));
  EMBER_ASSIGN(Lock lock, take_lock(path));
  store->read_only_ = lock.read_only;
  if (lock.read_only) store->holder_pid_ = lock.file.is_open() ? 0 : find_holder(path);
  store->lock_ = std::move(lock.file);
  return std::unique_ptr<StoreDirectory>(std::move(store));
}

Opened StoreDirectory::open_read_only(const std::string& path) {
  EMBER_ASSIGN(FolderKind kind, look_at(path));
  EMBER_TRY(refuse_foreign(path, kind));
  if (kind != FolderKind::kStore) {
    return Error{ErrorCode::kInvalidArgument, path + ": there is no store"};
  }
  auto store = std::make_unique<StoreDirectoryImpl>();
  store->path_ = path;
  store->read_only_ = true;
  EMBER_ASSIGN(store->secret_, read_identity(path));
  store->holder_pid_ = find_holder(path);
  return std::unique_ptr<StoreDirectory>(std::move(store));
}

Result<uint32_t> StoreDirectory::stored_version(const std::string& path) {
  EMBER_ASSIGN(std::string bytes, identity_bytes(path));
  EMBER_ASSIGN(std::string_view body, proven_identity(path + "/" + kIdentityName, bytes));
  return load_unaligned<uint32_t>(body.data());
}

std::string why_not_writable(const std::string& path) {
  if (::access(path.c_str(), W_OK) != 0) return path + ": " + std::strerror(errno);
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return path + ": " + std::strerror(errno);
  const uint64_t free_bytes = uint64_t{info.f_bavail} * info.f_frsize;
  if (free_bytes >= kLeastFreeBytes) return {};
  return path + ": the disk is full: " + human_bytes(free_bytes) + " free, expected at least " +
         human_bytes(kLeastFreeBytes);
}

std::string default_store_path() {
  const char* data = std::getenv("XDG_DATA_HOME");
  // The specification says to ignore a relative path.
  if (data != nullptr && data[0] == '/') return std::string(data) + "/emberkv";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] == '\0') {
    const struct passwd* user = ::getpwuid(::getuid());
    home = user != nullptr ? user->pw_dir : "/";
  }
  return std::string(home) + "/.local/share/emberkv";
}

}  // namespace ember
