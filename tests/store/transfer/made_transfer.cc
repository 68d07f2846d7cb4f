// Making, writing, reading and comparing small exports.
#include "tests/store/transfer/made_transfer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "store/codec.h"
#include "store/transfer/transfer_writer.h"
#include "tests/store/made_rows.h"

namespace ember::testing {
namespace {

std::vector<TokenId> made_tokens(Prng& prng, size_t count) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(prng.below(1000));
  return tokens;
}

Conversation made_conversation(Prng& prng, const std::string& id, const std::string& scope,
                               const NamespaceHash& name_space) {
  Conversation one;
  one.id = id;
  one.scope = scope;
  one.name_space = name_space;
  one.system = "Be brief.";
  one.template_name = "plain";
  one.created_unix_us = 1'700'000'000'000'000;
  one.updated_unix_us = 1'700'000'000'000'001;
  for (int i = 0; i < 3; ++i) {
    Turn turn;
    turn.user = "turn " + std::to_string(i);
    turn.prompt = made_tokens(prng, 5);
    turn.answer = made_tokens(prng, 7);
    turn.state = i == 2 ? TurnState::kAsked : TurnState::kFinished;
    turn.finish_reason = i == 2 ? "" : "stop";
    turn.seed = prng();
    turn.temperature = 0.5f;
    turn.max_tokens = 16;
    one.turns.push_back(std::move(turn));
  }
  return one;
}

bool same(const Turn& a, const Turn& b) {
  return a.user == b.user && a.prompt == b.prompt && a.answer == b.answer && a.state == b.state &&
         a.finish_reason == b.finish_reason && a.seed == b.seed &&
         a.temperature == b.temperature && a.max_tokens == b.max_tokens;
}

bool same(const Conversation& a, const Conversation& b) {
  return a.id == b.id && a.scope == b.scope && a.name_space == b.name_space &&
         a.system == b.system && a.template_name == b.template_name &&
         a.created_unix_us == b.created_unix_us && a.updated_unix_us == b.updated_unix_us &&
         std::equal(a.turns.begin(), a.turns.end(), b.turns.begin(), b.turns.end(),
                    [](const Turn& x, const Turn& y) { return same(x, y); });
}

bool same(const TransferItem& a, const TransferItem& b) {
  return a.kind == b.kind && a.number == b.number && a.parent == b.parent &&
         a.record == b.record && a.payloads == b.payloads && a.files == b.files &&
         a.tokenizer == b.tokenizer && same(a.conversation, b.conversation);
}

bool same(const TransferNamespace& a, const TransferNamespace& b) {
  return a.name == b.name && a.model == b.model && a.fields == b.fields &&
         a.tokenizer == b.tokenizer && a.layout.has_value() == b.layout.has_value() &&
         (!a.layout || a.layout->identity() == b.layout->identity());
}

}  // namespace

ByteSource source_of(const std::string& bytes, size_t most_at_once) {
  auto at = std::make_shared<size_t>(0);
  return [&bytes, at, most_at_once](char* to, size_t most) -> Result<size_t> {
    const size_t size = std::min({most, most_at_once, bytes.size() - *at});
    std::memcpy(to, bytes.data() + *at, size);
    *at += size;
    return size;
  };
}

KvLayout made_layout() { return KvLayout(3, 8, Stream{.row_values = 16}, 1); }

TransferItem made_block(Prng& prng, const NamespaceHash& name_space, const std::string& scope,
                        uint32_t position, size_t tokens) {
  const KvLayout layout = made_layout();
  TransferItem item;
  item.kind = TransferKind::kBlock;
  item.record.tail = tokens < layout.block_tokens();
  item.record.name_space = name_space;
  item.record.scope = scope;
  item.record.numerics_build = 7;
  item.record.position = position;
  item.record.streams = {layout.stream()};
  item.record.tokens = made_tokens(prng, tokens);
  const GroupShape shape{DType::kBf16, layout.stream().row_values, static_cast<uint32_t>(tokens)};
  for (uint32_t layer = 0; layer < layout.layers(); ++layer) {
    const std::vector<std::byte> raw = made_rows(prng, layout.stream().row_values, tokens);
    EncodedGroup coded = encode_group(shape, raw);
    item.record.groups.push_back({.first_layer = layer,
                                  .layers = 1,
                                  .raw_bytes = static_cast<uint32_t>(raw.size()),
                                  .stored_bytes = static_cast<uint32_t>(coded.payload.size()),
                                  .codec = coded.codec,
                                  .checksum = checksum64(raw)});
    item.payloads.push_back(std::move(coded.payload));
  }
  return item;
}

MadeTransfer made_transfer(uint64_t seed, size_t blocks) {
  Prng prng(seed);
  MadeTransfer made;
  made.manifest.program = "0.1.0";
  made.manifest.made_unix_us = 1'700'000'000'000'000;
  made.manifest.scopes = {"shared", "acme"};
  TransferNamespace name;
  name.fields = {{"weights", "0123"}, {"layout", "mla"}};
  name.layout = made_layout();
  name.name = namespace_hash(name.fields, *name.layout);
  name.model = "made";
  name.tokenizer.bytes[3] = 9;
  made.manifest.name_spaces = {name};
  TransferItem tokenizer;
  tokenizer.kind = TransferKind::kTokenizer;
  tokenizer.files = {{"tokenizer.json.gz", "not looked into"}, {"tokenizer_config.json", "{}"}};
  tokenizer.tokenizer.digest = name.tokenizer;
  for (const auto& [file, bytes] : tokenizer.files) {
    tokenizer.tokenizer.files.push_back({file, bytes.size()});
  }
  made.manifest.tokenizers = {tokenizer.tokenizer};
  made.items.push_back(tokenizer);
  const size_t first = made.items.size();
  for (uint64_t number = 1; number <= blocks; ++number) {
    uint64_t parent = prng.below(number);
    while (parent != 0 && made.items[first + parent - 1].record.tail) parent = prng.below(number);
    const BlockRecord* above = parent == 0 ? nullptr : &made.items[first + parent - 1].record;
    const bool own = (above != nullptr && above->scope != "shared") || prng.below(3) == 0;
    const size_t tokens = prng.below(4) == 0 ? 1 + prng.below(7) : 8;
    TransferItem item = made_block(prng, name.name, own ? "acme" : "shared",
                                   above == nullptr ? 0 : above->position + 1, tokens);
    item.number = number;
    item.parent = parent;
    made.items.push_back(std::move(item));
  }
  for (const char* last : {"a", "b"}) {
    char id[24];
    std::snprintf(id, sizeof id, "%015llx%s", static_cast<unsigned long long>(seed), last);
    TransferItem item;
    item.kind = TransferKind::kConversation;
    item.conversation = made_conversation(prng, id, "shared", name.name);
    made.items.push_back(std::move(item));
  }
  made.manifest.planned = {.blocks = blocks, .tails = 0, .conversations = 2};
  return made;
}

std::string written(const MadeTransfer& made) {
  std::string bytes;
  auto writer = TransferWriter::begin(
      [&bytes](std::string_view piece) -> Status {
        bytes += piece;
        return {};
      },
      made.manifest);
  EMBER_CHECK(writer.ok(), "a transfer in memory");
  bool good = true;
  for (const TransferItem& item : made.items) {
    for (const auto& [name, file] : item.files) {
      good = (*writer)->add_tokenizer_file(item.tokenizer.digest, name, file).ok() && good;
    }
    if (item.kind == TransferKind::kBlock) {
      const auto number = (*writer)->add_block(item.record, item.payloads, item.parent);
      good = number.ok() && *number == item.number && good;
    }
    if (item.kind == TransferKind::kConversation) {
      good = (*writer)->add_conversation(item.conversation).ok() && good;
    }
  }
  good = (*writer)->end(0).ok() && good && (*writer)->bytes() == bytes.size();
  EMBER_CHECK(good, "a transfer in memory");
  return bytes;
}

Result<Read> read_all(const std::string& bytes, size_t most) {
  EMBER_ASSIGN(const std::unique_ptr<TransferReader> reader,
               TransferReader::open(source_of(bytes, most)));
  Read read{reader->manifest(), {}};
  while (true) {
    EMBER_ASSIGN(TransferItem item, reader->next());
    if (item.kind == TransferKind::kEnd) return read;
    read.items.push_back(std::move(item));
  }
}

bool same(const MadeTransfer& made, const Read& read) {
  const TransferManifest& a = made.manifest;
  const TransferManifest& b = read.manifest;
  return a.program == b.program && a.made_unix_us == b.made_unix_us && a.planned == b.planned &&
         a.scopes == b.scopes && a.tokenizers == b.tokenizers &&
         std::equal(a.name_spaces.begin(), a.name_spaces.end(), b.name_spaces.begin(),
                    b.name_spaces.end(),
                    [](const auto& x, const auto& y) { return same(x, y); }) &&
         std::equal(made.items.begin(), made.items.end(), read.items.begin(), read.items.end(),
                    [](const auto& x, const auto& y) { return same(x, y); });
}

Entries entries_of(const std::string& bytes) {
  const auto reader = TarReader::make(source_of(bytes, 4096));
  Entries entries;
  while (true) {
    const auto entry = reader->next();
    EMBER_CHECK(entry.ok(), "a tar that we wrote");
    if (!*entry) return entries;
    std::string body;
    EMBER_CHECK(reader->read(UINT64_MAX, body).ok(), "a tar that we wrote");
    entries.emplace_back((*entry)->name, std::move(body));
  }
}

std::string tar_of(const Entries& entries) {
  std::string bytes;
  const auto writer = TarWriter::make([&bytes](std::string_view piece) -> Status {
    bytes += piece;
    return {};
  });
  for (const auto& [name, body] : entries) {
    EMBER_CHECK(writer->add(name, body, 1).ok(), "a tar in memory");
  }
  EMBER_CHECK(writer->end().ok(), "a tar in memory");
  return bytes;
}

std::string sealed(Entries entries) {
  TransferDigest digest;
  TransferEnd end;
  for (const auto& [name, body] : entries) {
    if (name == kEndName) break;
    digest.add(name, body);
    if (name.rfind("conversations/", 0) == 0) ++end.counts.conversations;
    if (name.rfind("blocks/", 0) != 0) continue;
    const auto block = decode_block_entry(body);
    ++(block.ok() && block->record.tail ? end.counts.tails : end.counts.blocks);
  }
  end.digest = digest.value();
  for (auto& [name, body] : entries) {
    if (name == kEndName) body = encode_end(end);
  }
  return tar_of(entries);
}

}  // namespace ember::testing
