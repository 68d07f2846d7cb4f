// conversations: the talks that a store keeps: listed, shown, exported.
//
// Journey    conversations database -> [conversations] -> conversation_form -> text or JSON
// Invariant  reads only; the ids that were sampled are told as they were, never made anew from text
// Threads    the command's
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "tools/commands/command_context.h"

namespace ember {

struct ListConversationsOptions {
  StoreChoice store;
  uint64_t limit = 50;  // lines; 0: all
  bool json = false;
};

struct ShowConversationOptions {
  StoreChoice store;
  std::string id;    // 16 digits, or "last"
  bool ids = false;  // with token ids
  bool json = false;
};

enum class ConversationForm : uint8_t { kJson, kText };

struct ExportConversationOptions {
  StoreChoice store;
  std::string id;  // 16 digits, or "last"
  ConversationForm form = ConversationForm::kJson;
  std::string file;  // empty: standard output
  bool json = false;  // what was written where, as JSON
};

// `id`: 16 digits, or "last" for the latest. Errors: kInvalidArgument (there is none), kCorruption.
Result<Conversation> load_conversation(Conversations& conversations, const std::string& id);

// Errors: those of opening the store.
Result<int> run_list_conversations(const ListConversationsOptions& options,
                                   CommandContext& context);
// The whole talk, a turn after the other. Errors: kInvalidArgument (no such conversation),
// kCorruption.
Result<int> run_show_conversation(const ShowConversationOptions& options, CommandContext& context);
// All of it, to keep. A file is there when it is whole, for its owner alone. Errors: as above; kIo.
Result<int> run_export_conversation(const ExportConversationOptions& options,
                                    CommandContext& context);

}  // namespace ember
