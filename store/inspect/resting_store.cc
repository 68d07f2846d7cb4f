// A store at rest, opened to be looked at: no model, no lock, not a byte written.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "store/disk/ballast.h"
#include "store/inspect/parts_reader.h"

namespace ember {
namespace {

// RAM for RocksDB's cache of metadata while a store is looked at.
constexpr uint64_t kInspectionCacheBytes = 8u << 20;

// When a file below `path` was last written: what a flush does.
int64_t last_written_unix_us(const std::string& path) {
  namespace fs = std::filesystem;
  int64_t latest = 0;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    struct stat status;
    if (::stat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const int64_t written =
        int64_t{status.st_mtim.tv_sec} * 1'000'000 + status.st_mtim.tv_nsec / 1000;
    // RocksDB's own log is written without a flush.
    if (it->path().filename().string().rfind("LOG", 0) != 0) latest = std::max(latest, written);
  }
  return latest;
}

class RestingStore final : public PartsReader {
 public:
  RestingStore(RestingParts owned, bool encrypted)
      : PartsReader({.directory = owned.directory.get(),
                     .disk = owned.disk.get(),
                     .conversations = owned.conversations.get(),
                     .quarantine = owned.quarantine.get()}),
        owned_(std::move(owned)),
        encrypted_(encrypted) {}

  StoreFacts facts() override {
    StoreFacts facts;
    facts.path = owned_.directory->path();
    facts.version = kStoreVersion;
    facts.encrypted = encrypted_;
    facts.holder_pid = owned_.directory->holder_pid();
    if (facts.holder_pid != 0) facts.as_of_unix_us = last_written_unix_us(facts.path + "/blocks");
    facts.health = owned_.disk->stats().health;
    const std::string obstacle = why_not_writable(facts.path);
    if (facts.health == "ok" && !obstacle.empty()) facts.health = "reading only: " + obstacle;
    const std::string open_to_others = owned_.directory->open_to_others();
    if (facts.health == "ok" && !open_to_others.empty()) facts.health = open_to_others;
    return facts;
  }

 private:
  const RestingParts owned_;
  const bool encrypted_;
};

}  // namespace

Result<RestingParts> RestingParts::open(const std::string& path,
                                        const EncryptionOptions& encryption) {
  RestingParts parts;
  EMBER_ASSIGN(parts.directory, StoreDirectory::open_read_only(path, encryption));
  const std::string& trouble = parts.directory->key_trouble();
  if (!trouble.empty()) return Error{ErrorCode::kInvalidArgument, trouble};
  DiskTierOptions disk;
  disk.directory = path + "/blocks";
  disk.block_cache_bytes = kInspectionCacheBytes;
  disk.read_only = true;
  disk.sealer = parts.directory->sealer();
  EMBER_ASSIGN(parts.disk, DiskTier::open(disk));
  ConversationsOptions conversations;
  conversations.directory = path + "/conversations";
  conversations.read_only = true;
  conversations.sealer = parts.directory->sealer();
  EMBER_ASSIGN(parts.conversations, Conversations::open(conversations));
  parts.quarantine = Quarantine::open(path + "/quarantine", UINT64_MAX, true);
  return parts;
}

Result<std::unique_ptr<StoreReader>> open_resting_store(const std::string& path,
                                                        const EncryptionOptions& encryption) {
  EMBER_ASSIGN(RestingParts parts, RestingParts::open(path, encryption));
  return std::unique_ptr<StoreReader>(
      std::make_unique<RestingStore>(std::move(parts), encryption.on));
}

uint64_t ballast_bytes_of(const std::string& path) {
  std::error_code absent;
  const uint64_t bytes = std::filesystem::file_size(path + "/blocks/" + kBallastName, absent);
  return absent ? 0 : bytes;
}

uint64_t directory_bytes(const std::string& path) {
  namespace fs = std::filesystem;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;  // a file of a running holder may go while we look
    if (!it->is_regular_file(gone)) continue;
    const uint64_t size = it->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace ember
