// Where a store lies that a command was given, and who talks in it.
#include "tools/commands/command_context.h"

#include "tools/commands/engine_difference.h"

namespace ember {

std::string CommandContext::path_of(const StoreChoice& choice) const {
  if (choice.path.empty()) return default_store.empty() ? default_store_path() : default_store;
  return folder.empty() ? choice.path : path_from(folder, choice.path);
}

Result<ConversationClaim> CommandContext::claim(const std::string& conversation) const {
  if (claims == nullptr) return ConversationClaim();
  ConversationClaim claim = claims->claim(conversation);
  if (claim != nullptr) return claim;
  return Error{ErrorCode::kBusy, "conversation " + conversation + " is open in a terminal"};
}

}  // namespace ember
