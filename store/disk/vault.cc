// Vault: keys made, wrapped and destroyed; values sealed and opened.
#include "store/disk/vault.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "store/disk/private_file.h"

namespace ember {
namespace {

constexpr size_t kMostDerivedKeys = 1024;
constexpr std::string_view kWrapLabel = "emberkv wrapping key 1";
constexpr std::string_view kCheckLabel = "emberkv master key check 1";
constexpr std::string_view kValueLabel = "emberkv value key 1";

template <size_t N>
std::string_view view_of(const std::array<char, N>& bytes) {
  return {bytes.data(), bytes.size()};
}

std::array<char, 16> check_of(const SecretKey& master, std::string_view salt) {
  const SecretKey derived = master.derive(kCheckLabel, salt);
  std::array<char, 16> check;
  std::memcpy(check.data(), derived.view().data(), check.size());
  return check;
}

std::string wrap_context(uint32_t id) {
  std::string context("emberkv key");
  append_value(context, id);
  return context;
}

// What a sealed value proves beside itself: how it was sealed, and where it belongs.
std::string value_context(std::string_view sealed_head, ValuePlace place) {
  std::string context(sealed_head.substr(0, kSealContextBytes));
  context.push_back(static_cast<char>(place.kind));
  context.append(place.key);
  return context;
}

}  // namespace

Vault::Vault(const VaultOptions& options, KeysFile file, const SecretKey& master)
    : options_(options),
      wrapping_(master.derive(kWrapLabel, view_of(file.salt))),
      file_(std::move(file)) {}

Vault::~Vault() { wipe(secret_.data(), secret_.size()); }

Result<std::unique_ptr<Vault>> Vault::create(const VaultOptions& options, const SecretKey& master,
                                             const HashSecret& secret) {
  KeysFile file;
  fill_random(file.salt.data(), file.salt.size());
  file.check = check_of(master, view_of(file.salt));
  std::unique_ptr<Vault> vault(new Vault(options, file, master));
  vault->secret_ = secret;
  const std::string_view plain(reinterpret_cast<const char*>(secret.data()), secret.size());
  file.entries.push_back(vault->wrap(kSecretId, plain));
  EMBER_TRY(vault->write(file, false));
  MutexLock lock(vault->mutex_);
  vault->file_ = std::move(file);
  return vault;
}

Result<std::unique_ptr<Vault>> Vault::open(const VaultOptions& options, const SecretKey& master) {
  const std::string path = options.store + "/KEYS";
  EMBER_ASSIGN(const std::string bytes, read_small_file(path, kMostKeysBytes));
  EMBER_ASSIGN(KeysFile file, decode_keys(path, bytes));
  const std::array<char, 16> check = check_of(master, view_of(file.salt));
  if (!equal_in_constant_time(view_of(check), view_of(file.check))) {
    return Error{ErrorCode::kInvalidArgument,
                 options.store + ": the store was made with another master key"};
  }
  std::unique_ptr<Vault> vault(new Vault(options, std::move(file), master));
  EMBER_TRY(vault->unwrap_all());
  return vault;
}

WrappedKey Vault::wrap(uint32_t id, std::string_view plain) const {
  WrappedKey entry;
  entry.id = id;
  fill_random(entry.nonce.data(), entry.nonce.size());
  wrapping_.seal(entry.nonce, wrap_context(id), plain, entry.sealed);
  return entry;
}

bool Vault::unwrap(const WrappedKey& entry, std::string& plain) const {
  return wrapping_.open(entry.nonce, wrap_context(entry.id), entry.sealed, plain);
}

Status Vault::unwrap_all() {
  MutexLock lock(mutex_);
  bool have_secret = false;
  for (const WrappedKey& entry : file_.entries) {
    std::string plain;
    const size_t least = entry.id == kSecretId ? secret_.size() : kSecretKeyBytes;
    bool good = unwrap(entry, plain) && plain.size() >= least;
    if (good && entry.id == kSecretId) {
      std::memcpy(secret_.data(), plain.data(), secret_.size());
      have_secret = true;
    } else if (good) {
      DataKey& key = keys_[entry.id];
      std::memcpy(key.key.bytes().data(), plain.data(), kSecretKeyBytes);
      key.scope = plain.substr(kSecretKeyBytes);
      good = by_scope_.emplace(key.scope, entry.id).second;
    }
    wipe(plain.data(), plain.size());
    if (!good) {
      return {ErrorCode::kCorruption,
              keys_path() + ": damaged: key " + std::to_string(entry.id) + " cannot be unwrapped"};
    }
  }
  if (have_secret) return {};
  return {ErrorCode::kCorruption, keys_path() + ": damaged: it has no hash secret"};
}

// With `wipe_old` what KEYS was before is overwritten with zeros after it was replaced, as far as
// the file system lets us: one that writes elsewhere, and a flash drive, keep the old bytes a
// while.
Status Vault::write(const KeysFile& file, bool wipe_old) {
  if (options_.read_only) return {ErrorCode::kIo, keys_path() + ": opened for reading only"};
  const File old(wipe_old ? ::open(keys_path().c_str(), O_WRONLY | O_CLOEXEC) : -1);
  EMBER_TRY(write_durable_file(options_.base, keys_path(), encode_keys(file)));
  struct stat info {};
  if (!old.is_open() || ::fstat(old.fd(), &info) != 0) return {};
  const std::string zeros(static_cast<size_t>(info.st_size), '\0');
  const bool wiped = ::pwrite(old.fd(), zeros.data(), zeros.size(), 0) >= 0;
  static_cast<void>(wiped && ::fdatasync(old.fd()) == 0);
  return {};
}

Result<Vault::DataKey*> Vault::data_key(std::string_view scope) {
  const auto found = by_scope_.find(scope);
  if (found != by_scope_.end()) return &keys_.at(found->second);
  DataKey made;
  made.scope = scope;
  made.key = SecretKey::random();
  std::string plain;
  plain.reserve(kSecretKeyBytes + scope.size());  // no copy is left behind by growing
  plain.append(made.key.view());
  plain.append(scope);
  KeysFile file = file_;
  const uint32_t id = file.next_id++;
  file.entries.push_back(wrap(id, plain));
  wipe(plain.data(), plain.size());
  EMBER_TRY(write(file, false));
  file_ = std::move(file);
  by_scope_.emplace(made.scope, id);
  return &keys_.emplace(id, std::move(made)).first->second;
}

std::shared_ptr<const SealingKey> Vault::derived(const DerivedId& id, const DataKey& key) const {
  return std::make_shared<SealingKey>(key.key.derive(kValueLabel, view_of(id.second)));
}

Result<std::string> Vault::seal(std::string_view scope, ValuePlace place, std::string_view plain) {
  SealHead head;
  std::shared_ptr<const SealingKey> key;
  uint32_t message = 0;
  {
    MutexLock lock(mutex_);
    EMBER_ASSIGN(DataKey * data, data_key(scope));
    Writer& writer = data->writer;
    if (writer.key == nullptr || writer.messages == options_.messages_per_salt) {
      writer.head.key_id = by_scope_.find(scope)->second;
      fill_random(writer.head.salt.data(), writer.head.salt.size());
      writer.key = derived({writer.head.key_id, writer.head.salt}, *data);
      writer.messages = 0;
    }
    message = writer.messages++;
    head = writer.head;
    key = writer.key;
  }
  const uint32_t big_endian = __builtin_bswap32(message);
  std::memcpy(head.nonce.data(), &big_endian, sizeof big_endian);
  fill_random(head.nonce.data() + sizeof big_endian, kNonceBytes - sizeof big_endian);
  std::string sealed;
  sealed.reserve(plain.size() + kValueSealBytes);
  sealed = encode_seal_head(head);
  key->seal(head.nonce, value_context(sealed, place), plain, sealed);
  return sealed;
}

Result<std::optional<std::string>> Vault::open(ValuePlace place, std::string_view sealed) {
  EMBER_ASSIGN(const SealHead head, decode_seal_head(sealed));
  const DerivedId id{head.key_id, head.salt};
  std::shared_ptr<const SealingKey> key;
  bool known = false;
  {
    MutexLock lock(mutex_);
    const auto opened = opened_.find(id);
    known = opened != opened_.end();
    if (known) {
      key = opened->second;
    } else {
      const auto data = keys_.find(head.key_id);
      if (data == keys_.end()) {
        const bool forgotten = head.key_id != kSecretId && head.key_id < file_.next_id;
        if (forgotten) return std::optional<std::string>();
        return Error{ErrorCode::kCorruption, "sealed value: its key " +
                                                 std::to_string(head.key_id) +
                                                 " was never in KEYS"};
      }
      key = derived(id, data->second);
    }
  }
  std::string plain;
  if (!key->open(head.nonce, value_context(sealed, place), sealed.substr(kSealHeadBytes), plain)) {
    return Error{ErrorCode::kCorruption, "sealed value: it does not open: changed, or moved"};
  }
  if (!known) {
    // Only now: a damaged salt makes a key that opens nothing.
    MutexLock lock(mutex_);
    if (opened_.size() >= kMostDerivedKeys) opened_.clear();
    if (keys_.contains(head.key_id)) opened_.emplace(id, std::move(key));
  }
  return std::optional<std::string>(std::move(plain));
}

Result<bool> Vault::forget(std::string_view scope) {
  MutexLock lock(mutex_);
  const auto found = by_scope_.find(scope);
  if (found == by_scope_.end()) return false;
  const uint32_t id = found->second;
  KeysFile file = file_;
  std::erase_if(file.entries, [id](const WrappedKey& entry) { return entry.id == id; });
  EMBER_TRY(write(file, true));
  file_ = std::move(file);
  by_scope_.erase(found);
  keys_.erase(id);
  std::erase_if(opened_, [id](const auto& entry) { return entry.first.first == id; });
  return true;
}

std::vector<std::string> Vault::scopes() const {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [scope, id] : by_scope_) names.push_back(scope);
  return names;
}

}  // namespace ember
