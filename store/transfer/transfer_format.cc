// Transfer format: names, numbers, digests, and the entries that are no JSON.
#include "store/transfer/transfer_format.h"

#include <cstdio>
#include <cstring>

#include "base/bytes.h"
#include "store/disk/conversations_format.h"

namespace ember {
namespace {

void append_framed(std::string& out, std::string_view bytes) {
  append_value(out, static_cast<uint32_t>(bytes.size()));
  out += bytes;
}

std::string_view read_framed(ByteReader& reader) {
  return reader.read_bytes(reader.read<uint32_t>());
}

}  // namespace

void TransferDigest::add(std::string_view name, std::string_view body) {
  std::string framed(value_.view());
  append_framed(framed, name);
  append_value(framed, static_cast<uint64_t>(body.size()));
  framed += digest128(as_bytes(body)).view();
  value_ = digest128(as_bytes(framed));
}

std::string block_entry_name(uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "blocks/%010llu", static_cast<unsigned long long>(number));
  return name;
}

std::string conversation_entry_name(std::string_view id) {
  return "conversations/" + std::string(id);
}

std::string tokenizer_entry_name(const BlockHash& digest, std::string_view file) {
  return "tokenizers/" + digest.hex() + "/" + std::string(file);
}

bool is_tokenizer_file(std::string_view name) {
  return name == "tokenizer.json.gz" || name == "tokenizer_config.json";
}

BlockHash numbered(uint64_t number) {
  BlockHash hash;
  std::memcpy(hash.bytes.data(), &number, sizeof number);
  return hash;
}

std::optional<uint64_t> number_of(const BlockHash& hash) {
  const auto number = load_unaligned<uint64_t>(hash.bytes.data());
  if (numbered(number) != hash) return std::nullopt;
  return number;
}

std::string encode_block_entry(const BlockRecord& record, std::span<const std::string> payloads) {
  std::string body;
  append_framed(body, encode_record(record));
  for (const std::string& payload : payloads) body += payload;
  return body;
}

Result<BlockEntry> decode_block_entry(std::string_view body) {
  ByteReader reader(body);
  BlockEntry entry;
  EMBER_TRY(decode_record(read_framed(reader), entry.record));
  for (const GroupEntry& group : entry.record.groups) {
    entry.payloads.push_back(reader.read_bytes(group.stored_bytes));
  }
  if (!reader.finished()) {
    return Error{ErrorCode::kCorruption, "its payloads are not as long as its record says"};
  }
  return entry;
}

uint64_t most_entry_bytes(const KvLayout& layout) {
  const uint64_t rows = sizeof(GroupRow) * uint64_t{layout.layers()};
  const uint64_t tokens = sizeof(TokenId) * uint64_t{layout.block_tokens()};
  constexpr uint64_t kHeadAndNames = 4096;
  return layout.block_bytes() + rows + tokens + kHeadAndNames;
}

std::string encode_conversation_entry(const Conversation& conversation) {
  std::string body;
  append_framed(body, encode_head(head_key(conversation.id), conversation));
  append_value(body, static_cast<uint32_t>(conversation.turns.size()));
  for (uint32_t i = 0; i < conversation.turns.size(); ++i) {
    append_framed(body, encode_turn(turn_key(conversation.id, i), conversation.turns[i]));
  }
  return body;
}

Result<Conversation> decode_conversation_entry(std::string_view id, std::string_view body) {
  if (!is_conversation_id(id)) {
    return Error{ErrorCode::kCorruption, "its name is not that of a conversation"};
  }
  ByteReader reader(body);
  EMBER_ASSIGN(Conversation conversation, decode_head(head_key(id), read_framed(reader)));
  const auto turns = reader.read<uint32_t>();
  for (uint32_t i = 0; i < turns; ++i) {
    const std::string_view value = read_framed(reader);
    if (reader.failed()) break;
    EMBER_ASSIGN(Turn turn, decode_turn(turn_key(id, i), value));
    conversation.turns.push_back(std::move(turn));
  }
  if (!reader.finished()) {
    return Error{ErrorCode::kCorruption, "its turns are not as long as it says"};
  }
  return conversation;
}

}  // namespace ember
