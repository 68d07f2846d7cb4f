// Where a store lies that a command was given.
#include "tools/commands/command_context.h"

#include "tools/commands/engine_difference.h"

namespace ember {

std::string CommandContext::path_of(const StoreChoice& choice) const {
  if (choice.path.empty()) return default_store.empty() ? default_store_path() : default_store;
  return folder.empty() ? choice.path : path_from(folder, choice.path);
}

}  // namespace ember
