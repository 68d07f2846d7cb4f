// Conversations' format: writing and reading heads, turns and tails.
#include "store/disk/conversations_format.h"

#include "base/bytes.h"
#include "base/framed_text.h"
#include "store/disk/sealed_value.h"

namespace ember {
namespace {

constexpr size_t kIdDigits = 16;

std::string begun() {
  std::string body;
  append_value(body, kConversationVersion);
  return body;
}

Error damaged(const char* kind, const std::string& what) {
  return {ErrorCode::kCorruption, std::string(kind) + ": " + what};
}

// The fields behind the version: checksum first, so that only intact values are refused by version.
Result<std::string_view> proven_body(const char* kind, std::string_view key,
                                     std::string_view value) {
  if (value.size() < sizeof kConversationVersion + kSealBytes) {
    return damaged(kind, std::to_string(value.size()) + " bytes");
  }
  const std::optional<std::string_view> body = unsealed(key, value);
  if (!body) return damaged(kind, "its checksum does not agree");
  auto version = load_unaligned<uint16_t>(body->data());
  if (version != kConversationVersion) {
    return Error{ErrorCode::kUnsupported, std::string(kind) + ": version " +
                                              std::to_string(version) + ", this program reads " +
                                              std::to_string(kConversationVersion)};
  }
  return body->substr(sizeof version);
}

void append_ids(std::string& out, const std::vector<TokenId>& ids) {
  append_value(out, static_cast<uint32_t>(ids.size()));
  for (TokenId id : ids) append_value(out, id);
}

std::vector<TokenId> read_ids(ByteReader& reader) {
  size_t count = reader.read<uint32_t>();
  std::string_view bytes = reader.read_bytes(count * sizeof(TokenId));
  std::vector<TokenId> ids(bytes.size() / sizeof(TokenId));
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), bytes.size());
  return ids;
}

}  // namespace

bool is_conversation_id(std::string_view id) {
  return id.size() == kIdDigits && from_hex(id).has_value();
}

std::string head_key(std::string_view id) {
  std::string key("h");
  key.append(id);
  return key;
}

std::string turn_prefix(std::string_view id) {
  std::string key("t");
  key.append(id);
  return key;
}

std::string turn_key(std::string_view id, uint32_t index) {
  std::string key = turn_prefix(id);
  append_value(key, __builtin_bswap32(index));
  return key;
}

std::string encode_head(std::string_view key, const Conversation& conversation) {
  std::string body = begun();
  append_text(body, conversation.scope);
  append_value(body, conversation.name_space);
  append_text(body, conversation.system);
  append_text(body, conversation.template_name);
  append_value(body, conversation.created_unix_us);
  append_value(body, conversation.updated_unix_us);
  return sealed(key, std::move(body));
}

Result<Conversation> decode_head(std::string_view key, std::string_view value) {
  EMBER_ASSIGN(std::string_view body, proven_body("head of a conversation", key, value));
  ByteReader reader(body);
  Conversation conversation;
  conversation.id = std::string(key.substr(1));
  conversation.scope = read_text(reader);
  conversation.name_space = reader.read<NamespaceHash>();
  conversation.system = read_text(reader);
  conversation.template_name = read_text(reader);
  conversation.created_unix_us = reader.read<int64_t>();
  conversation.updated_unix_us = reader.read<int64_t>();
  if (!reader.finished()) return damaged("head of a conversation", "lengths do not agree");
  return conversation;
}

std::string encode_turn(std::string_view key, const Turn& turn) {
  std::string body = begun();
  append_value(body, turn.state);
  append_value(body, turn.seed);
  append_value(body, turn.temperature);
  append_value(body, turn.max_tokens);
  append_text(body, turn.user);
  append_text(body, turn.finish_reason);
  append_ids(body, turn.prompt);
  append_ids(body, turn.answer);
  return sealed(key, std::move(body));
}

Result<Turn> decode_turn(std::string_view key, std::string_view value) {
  EMBER_ASSIGN(std::string_view body, proven_body("turn of a conversation", key, value));
  ByteReader reader(body);
  Turn turn;
  turn.state = reader.read<TurnState>();
  turn.seed = reader.read<uint64_t>();
  turn.temperature = reader.read<float>();
  turn.max_tokens = reader.read<uint32_t>();
  turn.user = read_text(reader);
  turn.finish_reason = read_text(reader);
  turn.prompt = read_ids(reader);
  turn.answer = read_ids(reader);
  bool known = turn.state == TurnState::kAsked || turn.state == TurnState::kFinished;
  if (!reader.finished() || !known) return damaged("turn of a conversation", "fields do not agree");
  return turn;
}

std::string encode_tail(std::string_view key, const BlockRecord& record,
                        std::span<const std::string> payloads) {
  std::string body = begun();
  append_text(body, encode_record(record));
  for (const std::string& payload : payloads) body.append(payload);
  return sealed(key, std::move(body));
}

Result<TailValue> decode_tail(std::string_view key, std::string_view value) {
  EMBER_ASSIGN(std::string_view body, proven_body("tail record", key, value));
  ByteReader reader(body);
  TailValue tail;
  EMBER_ASSIGN(tail.record, decode_record(reader.read_bytes(reader.read<uint32_t>())));
  if (tail.record.hash.view() != key) {
    return damaged("tail record", "it is that of block " + tail.record.hash.hex());
  }
  for (const GroupEntry& group : tail.record.groups) {
    tail.payloads.push_back(reader.read_bytes(group.stored_bytes));
  }
  if (!reader.finished()) return damaged("tail record", "payload lengths do not agree");
  return tail;
}

}  // namespace ember
