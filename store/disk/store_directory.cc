// Store directory: making a store, holding it, and reading what it is.
#include "store/store_directory.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "store/disk/durable_file.h"
#include "store/disk/key_file.h"
#include "store/disk/open_parts.h"
#include "store/disk/private_file.h"
#include "store/disk/vault.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

// IDENTITY: magic "EMBS" 4, version 4, form 4, secret 192 (form 0 only: in an encrypted store it is
// wrapped in KEYS), XXH3-64 of all before it 8.
constexpr uint32_t kIdentityMagic = 0x53424d45;
constexpr uint32_t kFormClear = 0;
constexpr uint32_t kFormEncrypted = 1;
constexpr size_t kLargestIdentity = 1u << 16;
constexpr const char* kIdentityName = "IDENTITY";
constexpr const char* kUnfinishedName = "IDENTITY.tmp";
constexpr const char* kLockName = "LOCK";
constexpr const char* kKeysName = "KEYS";
constexpr const char* kUnfinishedKeysName = "KEYS.tmp";
constexpr const char* kOwnFolders[] = {"blocks", "conversations"};
// RocksDB writes a manifest and an options file to open: less room than this and it cannot.
constexpr uint64_t kLeastFreeBytes = 64u << 10;

struct Identity {
  bool encrypted = false;
  HashSecret secret{};  // zeros when encrypted: it is in KEYS then
};

std::string encode_identity(const Identity& identity) {
  std::string bytes;
  append_value(bytes, kIdentityMagic);
  append_value(bytes, kStoreVersion);
  append_value(bytes, identity.encrypted ? kFormEncrypted : kFormClear);
  if (!identity.encrypted) append_value(bytes, identity.secret);
  append_value(bytes, checksum64(as_bytes(bytes)));
  return bytes;
}

// What follows the magic. The checksum is the last field of every version, so that damage is told
// from another version.
Result<std::string_view> proven_identity(const std::string& path, std::string_view bytes) {
  Error damaged{ErrorCode::kCorruption, path + ": damaged: its checksum does not agree"};
  if (bytes.size() < 16 || bytes.size() > kLargestIdentity) {
    damaged.message = path + ": damaged: " + std::to_string(bytes.size()) +
                      " bytes, expected 20 or " + std::to_string(20 + kHashSecretBytes);
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

Result<Identity> decode_identity(const std::string& path, std::string_view bytes) {
  EMBER_ASSIGN(std::string_view body, proven_identity(path, bytes));
  ByteReader reader(body);
  auto version = reader.read<uint32_t>();
  if (version != kStoreVersion) {
    return Error{ErrorCode::kUnsupported, path + ": the store has version " +
                                              std::to_string(version) + ", this program reads " +
                                              std::to_string(kStoreVersion)};
  }
  Identity identity;
  auto form = reader.read<uint32_t>();
  identity.encrypted = form == kFormEncrypted;
  if (!identity.encrypted) identity.secret = reader.read<HashSecret>();
  if (reader.finished() && form <= kFormEncrypted) return identity;
  return Error{ErrorCode::kCorruption, path + ": damaged: form " + std::to_string(form) + " in " +
                                           std::to_string(bytes.size()) + " bytes"};
}

Result<Identity> read_identity(const std::string& store) {
  std::string path = store + "/" + kIdentityName;
  EMBER_ASSIGN(std::string bytes, read_small_file(path, kLargestIdentity));
  return decode_identity(path, bytes);
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
  // The umask may have taken bits from a new one.
  struct stat info {};
  if (::fstat(taken.file.fd(), &info) == 0 && info.st_size == 0) ::fchmod(taken.file.fd(), 0600);
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
    const bool leftover = name == kLockName || name == kUnfinishedName || name == kKeysName ||
                          name == kUnfinishedKeysName;
    if (!leftover) fresh = false;
  }
  if (error) return system_error(path, "cannot be listed", error.value());
  if (fresh) return FolderKind::kFresh;
  return ours ? FolderKind::kLostIdentity : FolderKind::kForeign;
}

class StoreDirectoryImpl final : public StoreDirectory {
 public:
  StoreDirectoryImpl(std::string path, const BaseFileSystem& base,
                     const EncryptionOptions& encryption)
      : path_(std::move(path)), base_(base), encryption_(encryption) {
    if (encryption_.key_file.empty()) encryption_.key_file = default_key_file();
  }
  ~StoreDirectoryImpl() override { wipe(secret_.data(), secret_.size()); }

  const std::string& path() const override { return path_; }
  const HashSecret& secret() const override { return secret_; }
  bool created() const override { return created_; }
  bool read_only() const override { return read_only_; }
  int holder_pid() const override { return holder_pid_; }
  std::shared_ptr<ValueSealer> sealer() const override { return vault_; }
  const std::string& key_trouble() const override { return key_trouble_; }
  std::vector<std::string> key_scopes() const override {
    return vault_ == nullptr ? std::vector<std::string>() : vault_->scopes();
  }
  Result<bool> destroy_key(const std::string& scope) override {
    return vault_ == nullptr ? Result<bool>(false) : vault_->forget(scope);
  }
  std::string open_to_others() const override { return ember::open_to_others(path_); }
  void discard() override;

  // The steps of opening.
  Result<Identity> look() const;  // what is there, if the options fit it
  Status unlock(const Identity& identity);
  Status fill_new();
  VaultOptions vault_options() const {
    VaultOptions options;
    options.store = path_;
    options.base = base_;
    options.read_only = read_only_;
    return options;
  }

  std::string path_;
  BaseFileSystem base_;
  EncryptionOptions encryption_;
  std::shared_ptr<Vault> vault_;
  std::string key_trouble_;
  HashSecret secret_{};
  bool created_ = false;
  bool made_key_file_ = false;
  bool read_only_ = false;
  int holder_pid_ = 0;
  File lock_;
  std::vector<fs::path> made_;  // folders, outermost first
};

void StoreDirectoryImpl::discard() {
  std::error_code ignored;
  for (const char* name : kOwnFolders) fs::remove_all(fs::path(path_) / name, ignored);
  for (const char* name :
       {kUnfinishedName, kIdentityName, kUnfinishedKeysName, kKeysName, kLockName}) {
    fs::remove(fs::path(path_) / name, ignored);
  }
  if (made_key_file_) fs::remove(encryption_.key_file, ignored);
  for (auto it = made_.rbegin(); it != made_.rend(); ++it) fs::remove(*it, ignored);
}

Result<Identity> StoreDirectoryImpl::look() const {
  EMBER_ASSIGN(Identity identity, read_identity(path_));
  if (identity.encrypted && !encryption_.on) {
    return Error{ErrorCode::kInvalidArgument,
                 path_ + ": the store is encrypted; open it with --encrypt, and with --key-file " +
                     "PATH unless its key is " + default_key_file()};
  }
  if (!identity.encrypted && encryption_.on) {
    return Error{ErrorCode::kInvalidArgument,
                 path_ + ": the store lies in clear and cannot be encrypted afterwards; open it " +
                     "without --encrypt, or make a new one in another folder"};
  }
  return identity;
}

Status StoreDirectoryImpl::unlock(const Identity& identity) {
  secret_ = identity.secret;
  if (!identity.encrypted) return {};
  const Result<SecretKey> master = load_key_file(encryption_.key_file);
  if (!master.ok()) {
    key_trouble_ = path_ + ": " + master.error().message;
    return {};
  }
  Result<std::unique_ptr<Vault>> vault = Vault::open(vault_options(), *master);
  if (!vault.ok() && vault.error().code == ErrorCode::kInvalidArgument) {
    key_trouble_ = vault.error().message + " than the one in " + encryption_.key_file;
    return {};
  }
  if (!vault.ok()) return vault.error();
  vault_ = std::move(*vault);
  secret_ = vault_->secret();
  return {};
}

Status StoreDirectoryImpl::fill_new() {
  EMBER_ASSIGN(Lock lock, take_lock(path_));
  if (lock.read_only) {
    return {ErrorCode::kIo, path_ + ": a new store cannot be made there: no permission"};
  }
  lock_ = std::move(lock.file);
  // Someone else may have made it between our look and the lock.
  EMBER_ASSIGN(FolderKind kind, look_at(path_));
  if (kind == FolderKind::kStore) {
    EMBER_ASSIGN(Identity there, look());
    return unlock(there);
  }
  // An empty folder that was there may have been open to all; where it is another user's it stays
  // so, and open_to_others() says it.
  static_cast<void>(::chmod(path_.c_str(), 0700) == 0);
  Identity identity;
  identity.encrypted = encryption_.on;
  fill_random(secret_.data(), secret_.size());
  if (encryption_.on) {
    EMBER_TRY(refuse_key_inside(encryption_.key_file, path_));
    if (!fs::exists(encryption_.key_file)) {
      EMBER_TRY(make_key_file(encryption_.key_file));
      made_key_file_ = true;
    }
    EMBER_ASSIGN(const SecretKey master, load_key_file(encryption_.key_file));
    EMBER_ASSIGN(vault_, Vault::create(vault_options(), master, secret_));
  } else {
    identity.secret = secret_;
  }
  // After a crash there is a whole identity or none.
  EMBER_TRY(write_durable_file(base_, path_ + "/" + kIdentityName, encode_identity(identity)));
  created_ = true;
  return {};
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

Opened make_store(std::unique_ptr<StoreDirectoryImpl> store) {
  Status status =
      make_folders(fs::absolute(store->path_).lexically_normal(), "a new store", store->made_);
  if (status.ok()) status = store->fill_new();
  if (status.ok()) return std::unique_ptr<StoreDirectory>(std::move(store));
  if (status.error().code != ErrorCode::kBusy) store->discard();
  return status.error();
}

}  // namespace

Opened StoreDirectory::open(const std::string& path, const EncryptionOptions& encryption) {
  return open_store_directory(path, nullptr, encryption);
}

Opened open_store_directory(const std::string& path, const BaseFileSystem& base,
                            const EncryptionOptions& encryption) {
  EMBER_ASSIGN(FolderKind kind, look_at(path));
  EMBER_TRY(refuse_foreign(path, kind));
  auto store = std::make_unique<StoreDirectoryImpl>(path, base, encryption);
  if (kind != FolderKind::kStore) return make_store(std::move(store));
  // First what it is: a store of another version is left as it was, its lock too.
  EMBER_ASSIGN(const Identity identity, store->look());
  EMBER_ASSIGN(Lock lock, take_lock(path));
  store->read_only_ = lock.read_only;
  if (lock.read_only) store->holder_pid_ = lock.file.is_open() ? 0 : find_holder(path);
  store->lock_ = std::move(lock.file);
  EMBER_TRY(store->unlock(identity));
  return std::unique_ptr<StoreDirectory>(std::move(store));
}

Opened StoreDirectory::open_read_only(const std::string& path,
                                      const EncryptionOptions& encryption) {
  EMBER_ASSIGN(FolderKind kind, look_at(path));
  EMBER_TRY(refuse_foreign(path, kind));
  if (kind != FolderKind::kStore) {
    return Error{ErrorCode::kInvalidArgument, path + ": there is no store"};
  }
  auto store = std::make_unique<StoreDirectoryImpl>(path, nullptr, encryption);
  store->read_only_ = true;
  EMBER_ASSIGN(const Identity identity, store->look());
  EMBER_TRY(store->unlock(identity));
  store->holder_pid_ = find_holder(path);
  return std::unique_ptr<StoreDirectory>(std::move(store));
}

Result<uint32_t> StoreDirectory::stored_version(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return Error{ErrorCode::kInvalidArgument, path + ": there is no store"};
  }
  const std::string name = path + "/" + kIdentityName;
  EMBER_ASSIGN(std::string bytes, read_small_file(name, kLargestIdentity));
  EMBER_ASSIGN(std::string_view body, proven_identity(name, bytes));
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
