// Conversations' format: keys and values of the conversations' database, drawn once.
//
// Journey    conversations -> [conversations_format] -> RocksDB
// Invariant  a value ends with the XXH3-64 of its key and of the bytes before it, so that neither
//            a changed byte nor a value under another key is believed; lengths are bounded
// Threads    any; pure
//
//   family `turns`
//     'h', id 16                         -> head: version 2, scope, namespace 16, system, template,
//                                           created 8, updated 8, checksum 8
//     't', id 16, index 4 (big-endian)   -> turn: version 2, state 1, seed 8, temperature 4,
//                                           max tokens 4, user, finish reason, prompt ids,
//                                           answer ids, checksum 8
//   family `tails`
//     block hash 16                      -> tail: version 2, record, payload bytes of the groups
//                                           in order, checksum 8
//   In an encrypted store these are what is sealed (store/disk/value_sealer.h), keys excepted.
//   A text or a list of ids is its length (4 bytes; of bytes or of ids), then its bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/conversations.h"

namespace ember {

inline constexpr uint16_t kConversationVersion = 2;

std::string head_key(std::string_view id);
std::string turn_key(std::string_view id, uint32_t index);
// All turns of a conversation begin with this.
std::string turn_prefix(std::string_view id);
bool is_conversation_id(std::string_view id);

std::string encode_head(std::string_view key, const Conversation& conversation);
Result<Conversation> decode_head(std::string_view key, std::string_view value);
std::string encode_turn(std::string_view key, const Turn& turn);
Result<Turn> decode_turn(std::string_view key, std::string_view value);

// A tail's value taken apart; views into the value.
struct TailValue {
  BlockRecord record;
  std::vector<std::string_view> payloads;
};
std::string encode_tail(std::string_view key, const BlockRecord& record,
                        std::span<const std::string> payloads);
Result<TailValue> decode_tail(std::string_view key, std::string_view value);

}  // namespace ember
