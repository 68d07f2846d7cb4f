// Conversations' salvage: what is left of a broken database of conversations, in a new one.
//
// Journey    <store>/conversations (broken) -> [conversations_salvage] -> a new folder
// Invariant  the old folder is read and never written; a row is taken only if its seal agrees; a
//            conversation ends before its first turn that is not there, and is named then
// Threads    one
// Not here   changing places: the old folder stays, taken aside (store/disk/renewed_folder.h)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/conversations.h"

namespace ember {

struct ConversationsSalvaged {
  uint64_t conversations = 0;
  uint64_t turns = 0;
  uint64_t tails = 0;
  std::vector<std::string> cut;   // ids: turns are missing at their end or in their midst
  std::vector<std::string> lost;  // ids: turns are there, what they belong to is not
};

// `into.directory` is empty. Errors: kIo, kCapacity.
Result<ConversationsSalvaged> salvage_conversations(const std::string& from,
                                                    const ConversationsOptions& into);

}  // namespace ember
