// Where a store lies that a command was given, how much room it may take, and who talks in it.
#include "tools/commands/command_context.h"

#include <algorithm>
#include <filesystem>

#include "store/ram_plan.h"
#include "store/store_directory.h"

namespace ember {

std::string path_from(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

Result<uint64_t> limit_for_changes(const std::string& path, const EncryptionOptions& encryption) {
  EMBER_TRY(StoreDirectory::open_read_only(path, encryption));
  EMBER_ASSIGN(const uint64_t bytes, default_disk_bytes(path));
  const uint64_t there = directory_bytes(path);
  return std::max(bytes, there + there / 2);
}

std::string CommandContext::path_of(const StoreChoice& choice) const {
  if (choice.path.empty()) return default_store.empty() ? default_store_path() : default_store;
  return folder.empty() ? choice.path : path_from(folder, choice.path);
}

Status CommandContext::may_change(const StoreChoice& choice) const {
  if (!choice.read_only) return {};
  return {ErrorCode::kInvalidArgument, path_of(choice) + ": --read-only changes nothing"};
}

Result<ConversationClaim> CommandContext::claim(const std::string& conversation) const {
  if (claims == nullptr) return ConversationClaim();
  ConversationClaim claim = claims->claim(conversation);
  if (claim != nullptr) return claim;
  return Error{ErrorCode::kBusy, "conversation " + conversation + " is open in a terminal"};
}

}  // namespace ember
