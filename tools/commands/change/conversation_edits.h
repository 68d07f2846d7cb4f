// Conversation edits: removing talks, and branching one: a new talk that has the old one's turns up
// to a place, from which another question goes on.
//
// Journey    conversations database -> [conversation_edits] -> store_editor
// Invariant  nobody talks in what is removed; what is branched from is left as it is; a branch is
//            there whole or not at all
// Threads    the command's
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/commands/command_context.h"
#include "tools/commands/confirm.h"

namespace ember {

struct RemoveConversationsOptions {
  StoreChoice store;
  std::vector<std::string> ids;  // 16 digits each, or "last"
  Consent consent;
  bool json = false;
};

struct BranchConversationOptions {
  StoreChoice store;
  std::string id;     // 16 digits, or "last"
  uint64_t turn = 0;  // from 1: the first one that the branch does not have; one past the last: all
  std::optional<std::string> message;  // asked when the branch goes on
  std::optional<std::string> message_file;
  bool json = false;
};

// The text goes; blocks and tails stay as cache, and are told. Exit code 2 without a terminal to
// ask at, --yes or --dry-run. Errors: kInvalidArgument (no such
// conversation), kBusy (somebody talks in one: none is removed), those of opening the store.
Result<int> run_remove_conversations(const RemoveConversationsOptions& options,
                                     CommandContext& context);
// Errors: kInvalidArgument (no such conversation or turn, or the one before it has a cut answer),
// those of opening the store.
Result<int> run_branch_conversation(const BranchConversationOptions& options,
                                    CommandContext& context);

}  // namespace ember
