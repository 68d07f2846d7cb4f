// Transfer format: the one file that carries blocks, tails and conversations from one store to
// another, entry by entry.
//
// Journey    export -> transfer_writer -> [transfer_format] -> transfer_reader -> import
// Invariant  no hash of a block and no secret of a store is in it: blocks are numbered, and hashed
//            anew where they come to; every length is bounded before it is trusted
// Threads    any; pure
// Not here   the tar around the entries (tar_stream.h), what an order of entries must be
//            (transfer_reader.h)
//
//   a tar of the ustar format, its entries in this order
//     manifest.json                       TransferManifest
//     tokenizers/<digest>/<file>          as in <store>/namespaces; the manifest says which
//     blocks/<number>                     record length 4, block record, payloads of its groups
//                                         number: ten digits, from 1 on, blocks and tails alike
//     conversations/<id>                  head length 4, head, turn count 4,
//                                         for each turn: length 4, turn
//     end.json                            TransferEnd
//
//   The block record is that of store/record.h; its hash is the block's number and its parent the
//   parent's number (zero: a first block), each in the first 8 bytes; epoch 0, no publisher. Head
//   and turn are those of store/disk/conversations_format.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "prefix_index/block_hash.h"
#include "store/conversations.h"
#include "store/kv_layout.h"
#include "store/namespace_identity.h"
#include "store/record.h"

namespace ember {

inline constexpr uint32_t kTransferVersion = 1;
inline constexpr std::string_view kTransferFormat = "emberkv-transfer";
inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kEndName = "end.json";

inline constexpr size_t kMostTransferJsonBytes = size_t{1} << 20;
inline constexpr size_t kMostTransferJsonDepth = 8;
inline constexpr size_t kMostTransferNamespaces = 64;
inline constexpr size_t kMostTransferScopes = 4096;
inline constexpr size_t kMostTransferFields = 64;
inline constexpr size_t kMostTransferTextBytes = 2048;  // of a field, a model's name
inline constexpr uint64_t kMostTokenizerFileBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMostTransferBlockBytes = uint64_t{256} << 20;  // decoded
inline constexpr uint64_t kMostConversationBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMostTransferBlocks = uint64_t{1} << 31;
// No vocabulary is larger.
inline constexpr TokenId kMostTokenId = (TokenId{1} << 24) - 1;

struct TransferFile {
  std::string name;  // tokenizer.json.gz or tokenizer_config.json
  uint64_t bytes = 0;
  friend bool operator==(const TransferFile&, const TransferFile&) = default;
};

struct TransferTokenizer {
  BlockHash digest;
  std::vector<TransferFile> files;
  friend bool operator==(const TransferTokenizer&, const TransferTokenizer&) = default;
};

struct TransferNamespace {
  NamespaceHash name;
  std::string model;
  std::vector<IdentityField> fields;
  // Of its blocks; nothing where none travels. With the fields it proves the name.
  std::optional<KvLayout> layout;
  BlockHash tokenizer;  // zeros: none
};

struct TransferCounts {
  uint64_t blocks = 0;
  uint64_t tails = 0;
  uint64_t conversations = 0;
  friend bool operator==(const TransferCounts&, const TransferCounts&) = default;
};

struct TransferManifest {
  std::string program;  // "0.1.0"
  int64_t made_unix_us = 0;
  TransferCounts planned;  // what was to come when it was begun; for a progress bar
  std::vector<std::string> scopes;
  std::vector<TransferNamespace> name_spaces;
  std::vector<TransferTokenizer> tokenizers;
};

struct TransferEnd {
  TransferCounts counts;
  uint64_t left_out = 0;  // of what was planned: damaged, or gone meanwhile
  BlockHash digest;       // of all entries before it (TransferDigest)
};

std::string encode_manifest(const TransferManifest& manifest);
// Errors: kUnsupported (another version, by its number), kCorruption naming the field.
Result<TransferManifest> decode_manifest(std::string_view text);
std::string encode_end(const TransferEnd& end);
Result<TransferEnd> decode_end(std::string_view text);

// Over names and bodies, in their order: D' = XXH3-128(D, name, XXH3-128(body)), framed.
class TransferDigest {
 public:
  void add(std::string_view name, std::string_view body);
  const BlockHash& value() const { return value_; }

 private:
  BlockHash value_;
};

// Names of entries.
std::string block_entry_name(uint64_t number);
std::string conversation_entry_name(std::string_view id);
std::string tokenizer_entry_name(const BlockHash& digest, std::string_view file);
bool is_tokenizer_file(std::string_view name);

// A number in the place of a hash, and back; nothing for a hash that is no number.
BlockHash numbered(uint64_t number);
std::optional<uint64_t> number_of(const BlockHash& hash);

std::string encode_block_entry(const BlockRecord& record, std::span<const std::string> payloads);
struct BlockEntry {
  BlockRecord record;
  std::vector<std::string_view> payloads;  // views into the entry
};
// Errors: those of decode_record; kCorruption (lengths).
Result<BlockEntry> decode_block_entry(std::string_view body);
// The most that an entry of a block with this layout may take.
uint64_t most_entry_bytes(const KvLayout& layout);

std::string encode_conversation_entry(const Conversation& conversation);
// Errors: kCorruption, kUnsupported.
Result<Conversation> decode_conversation_entry(std::string_view id, std::string_view body);

}  // namespace ember
