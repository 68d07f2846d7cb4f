// Conversation blocks: which blocks and tails of a store hold what was said in a conversation.
//
// Journey    conversations, block_tree -> [conversation_blocks] -> rm, export, conversation_edits
// Invariant  hashes locate them; a tail is one only if its tokens are the conversation's
// Threads    the command's
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "store/conversations.h"
#include "store/store_reader.h"
#include "tools/commands/look/block_tree.h"

namespace ember {

// All tokens of a conversation, turn after turn.
std::vector<TokenId> tokens_of(const Conversation& conversation);

// Nodes, from the first block on, each tail right behind the block that it follows.
// Errors: those of reading records.
Result<std::vector<uint32_t>> blocks_of(const Conversation& conversation, StoreReader& reader,
                                        const BlockTree& tree);

}  // namespace ember
