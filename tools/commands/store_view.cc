// Opening a store for inspection, and putting its records in the order of their chains.
#include "tools/commands/store_view.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <unordered_set>
#include <utility>

namespace ember {
namespace {

// RAM for RocksDB's cache of metadata while a store is looked at.
constexpr uint64_t kInspectionCacheBytes = 8u << 20;

}  // namespace

std::string store_path_of(const std::string& flag) {
  return flag.empty() ? default_store_path() : flag;
}

Result<StoreView> StoreView::open(const std::string& path, const EncryptionOptions& encryption) {
  StoreView view;
  EMBER_ASSIGN(view.directory, StoreDirectory::open_read_only(path, encryption));
  const std::string& trouble = view.directory->key_trouble();
  if (!trouble.empty()) return Error{ErrorCode::kInvalidArgument, trouble};
  DiskTierOptions disk;
  disk.directory = path + "/blocks";
  disk.block_cache_bytes = kInspectionCacheBytes;
  disk.read_only = true;
  disk.sealer = view.directory->sealer();
  EMBER_ASSIGN(view.disk, DiskTier::open(disk));
  ConversationsOptions conversations;
  conversations.directory = path + "/conversations";
  conversations.read_only = true;
  conversations.sealer = view.directory->sealer();
  EMBER_ASSIGN(view.conversations, Conversations::open(conversations));
  view.quarantine = Quarantine::open(path + "/quarantine", UINT64_MAX, true);
  return view;
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

void sort_by_chain(std::vector<RecordRow>& rows) {
  std::unordered_set<BlockHash> known;
  for (const RecordRow& row : rows) known.insert(row.first.hash);
  std::multimap<BlockHash, size_t> children;
  std::vector<size_t> stack;
  for (size_t i = 0; i < rows.size(); ++i) {
    const BlockHash& parent = rows[i].first.parent;
    if (known.contains(parent) && parent != rows[i].first.hash) {
      children.emplace(parent, i);
    } else {
      stack.push_back(i);
    }
  }
  const auto later_hash = [&rows](size_t a, size_t b) {
    return rows[a].first.hash > rows[b].first.hash;
  };
  std::sort(stack.begin(), stack.end(), later_hash);
  std::vector<RecordRow> sorted;
  sorted.reserve(rows.size());
  while (!stack.empty()) {
    const size_t next = stack.back();
    stack.pop_back();
    const auto [first, last] = children.equal_range(rows[next].first.hash);
    const size_t below = stack.size();
    for (auto it = first; it != last; ++it) stack.push_back(it->second);
    std::sort(stack.begin() + static_cast<std::ptrdiff_t>(below), stack.end(), later_hash);
    children.erase(first, last);
    sorted.push_back(std::move(rows[next]));
  }
  // Damage alone makes records each other's parents; they are shown all the same.
  for (const auto& [parent, index] : children) sorted.push_back(std::move(rows[index]));
  rows = std::move(sorted);
}

}  // namespace ember
