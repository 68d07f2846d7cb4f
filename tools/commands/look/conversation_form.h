// Conversation form: a talk as people read it, and as programs do.
//
// Journey    conversations database -> [conversation_form] -> show, export
// Invariant  the JSON of an export holds all of a talk, the sampled ids as they were; it is also a
//            messages file, which generate, explain and warm read; the text has no control
//            characters
// Threads    the command's
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "store/conversations.h"
#include "store/namespace_book.h"
#include "tools/commands/look/prefix_text.h"

namespace ember {

inline constexpr int kConversationFormVersion = 1;

const char* turn_state_name(TurnState state);  // "finished" or "cut"

// Prompts and answers of all turns.
uint64_t token_count(const Conversation& conversation);

// Turn after turn; an answer whose tokenizer the store does not keep is told by its length.
void print_conversation(const Conversation& conversation, PrefixText& text, std::ostream& out);

// {"format", "version", "conversation", "scope", "template", "identity", "created_unix_us",
// "updated_unix_us", "messages"}. A message is {"role", "content"}; a user's has the turn's fields
// and its prompt's ids too, an answer its ids, state and finish reason.
std::string export_json(const Conversation& conversation, const NamespaceNote& note,
                        PrefixText& text);

}  // namespace ember
