// Transfer reader: order, namespaces, chains and checksums of a file from elsewhere.
#include "store/transfer/transfer_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "store/cache/block_coder.h"
#include "store/tenants.h"
#include "store/transfer/block_proof.h"

namespace ember {
namespace {

Error damaged(const std::string& entry, const std::string& what) {
  return {ErrorCode::kCorruption, entry + ": " + what};
}

// The same error with the entry's name in front.
Error in_entry(const std::string& entry, const Error& error) {
  return {error.code, entry + ": " + error.message};
}

bool is_scope(const std::string& name) {
  return name == kSharedScopeName || check_tenant_name(name).ok();
}

}  // namespace

Result<std::unique_ptr<TransferReader>> TransferReader::open(ByteSource source) {
  std::unique_ptr<TransferReader> reader(new TransferReader(TarReader::make(std::move(source))));
  EMBER_TRY(reader->read_manifest());
  return reader;
}

Status TransferReader::read_manifest() {
  std::string name;
  std::string body;
  EMBER_ASSIGN(const bool found, take(name, body));
  if (!found || name != kManifestName) {
    return {ErrorCode::kCorruption, "it begins with no manifest: it is no export of emberkv"};
  }
  digest_.add(name, body);
  EMBER_ASSIGN(manifest_, decode_manifest(body));
  return check_manifest();
}

Status TransferReader::check_manifest() const {
  const std::string file(kManifestName);
  std::set<std::string> scopes;
  for (const std::string& scope : manifest_.scopes) {
    if (!is_scope(scope) || !scopes.insert(scope).second) {
      return damaged(file, "a scope has no name that a scope can have, or is there twice");
    }
  }
  std::set<BlockHash> tokenizers;
  for (const TransferTokenizer& one : manifest_.tokenizers) {
    if (!tokenizers.insert(one.digest).second) return damaged(file, "a tokenizer is there twice");
  }
  std::set<NamespaceHash> names;
  for (const TransferNamespace& one : manifest_.name_spaces) {
    if (!names.insert(one.name).second) return damaged(file, "a namespace is there twice");
    if (one.tokenizer != BlockHash{} && !tokenizers.contains(one.tokenizer)) {
      return damaged(file, "the tokenizer of namespace " + one.name.hex() + " is not there");
    }
    if (one.layout && namespace_hash(one.fields, *one.layout) != one.name) {
      return damaged(file, "namespace " + one.name.hex() +
                               ": its fields and layout are those of another");
    }
  }
  return {};
}

Result<bool> TransferReader::take(std::string& name, std::string& body) {
  EMBER_ASSIGN(const std::optional<TarEntry> entry, tar_->next());
  if (!entry) return false;
  name = entry->name;
  const uint64_t most = most_bytes_of(name);
  if (most == 0) {
    return Error{ErrorCode::kCorruption,
                 "it has an entry of another name than those of an export"};
  }
  const Status read = tar_->read(most, body);
  if (!read.ok()) return in_entry(name, read.error());
  return true;
}

// 0: there is no such entry. A name is compared, and never a path.
uint64_t TransferReader::most_bytes_of(const std::string& name) const {
  if (name == kManifestName || name == kEndName) return kMostTransferJsonBytes;
  if (name == block_entry_name(marks_.size() + 1)) {
    uint64_t most = 0;
    for (const TransferNamespace& one : manifest_.name_spaces) {
      if (one.layout) most = std::max(most, most_entry_bytes(*one.layout));
    }
    return most;
  }
  if (name.rfind("conversations/", 0) == 0) return kMostConversationBytes;
  for (const TransferTokenizer& one : manifest_.tokenizers) {
    for (const TransferFile& file : one.files) {
      if (name == tokenizer_entry_name(one.digest, file.name)) return kMostTokenizerFileBytes;
    }
  }
  return 0;
}

Result<TransferItem> TransferReader::next() {
  EMBER_CHECK(!ended_, "nothing is read behind the end");
  const BlockHash before = digest_.value();
  std::string name;
  std::string body;
  EMBER_ASSIGN(const bool found, take(name, body));
  if (!found) return Error{ErrorCode::kCorruption, "it has no end: it was cut short"};
  TransferKind kind = TransferKind::kTokenizer;
  if (name.rfind("blocks/", 0) == 0) kind = TransferKind::kBlock;
  if (name.rfind("conversations/", 0) == 0) kind = TransferKind::kConversation;
  if (name == kEndName) kind = TransferKind::kEnd;
  if (name == kManifestName || kind < rank_) return damaged(name, "is out of its order");
  if (kind != TransferKind::kTokenizer && tokenizers_ != manifest_.tokenizers.size()) {
    return damaged(name, "comes before all tokenizers have come");
  }
  rank_ = kind;
  switch (kind) {
    case TransferKind::kTokenizer:
      return tokenizer(name, std::move(body));
    case TransferKind::kBlock:
      digest_.add(name, body);
      return block(body);
    case TransferKind::kConversation:
      digest_.add(name, body);
      return conversation(name, body);
    case TransferKind::kEnd:
      return end(body, before);
  }
  return damaged(name, "is of no kind");
}

Result<TransferItem> TransferReader::tokenizer(const std::string& first, std::string bytes) {
  if (tokenizers_ == manifest_.tokenizers.size()) return damaged(first, "is there twice");
  TransferItem item;
  item.kind = TransferKind::kTokenizer;
  item.tokenizer = manifest_.tokenizers[tokenizers_++];
  std::string name = first;
  for (const TransferFile& file : item.tokenizer.files) {
    if (!item.files.empty()) {
      EMBER_ASSIGN(const bool found, take(name, bytes));
      if (!found) return damaged(first, "what belongs to it is not there");
    }
    const bool right = name == tokenizer_entry_name(item.tokenizer.digest, file.name) &&
                       bytes.size() == file.bytes;
    if (!right) return damaged(name, "is not what the manifest says");
    digest_.add(name, bytes);
    item.files.emplace_back(file.name, std::move(bytes));
  }
  return item;
}

Result<TransferItem> TransferReader::block(const std::string& body) {
  TransferItem item;
  item.kind = TransferKind::kBlock;
  item.number = marks_.size() + 1;
  const std::string name = block_entry_name(item.number);
  if (item.number > kMostTransferBlocks) return damaged(name, "there are too many blocks");
  Result<BlockEntry> entry = decode_block_entry(body);
  if (!entry.ok()) return in_entry(name, entry.error());
  BlockRecord& record = entry->record;
  const std::optional<uint64_t> parent = number_of(record.parent);
  if (record.hash != numbered(item.number) || !parent || *parent >= item.number) {
    return damaged(name, "its number or its parent's is not that of a block before it");
  }
  if (record.epoch != 0 || !record.publisher.empty()) {
    return damaged(name, "has fields that an export leaves empty");
  }
  item.parent = *parent;
  item.record = std::move(record);
  Mark mark;
  const Status chained = check_chain(item, mark);
  if (!chained.ok()) return in_entry(name, chained.error());
  const KvLayout& layout = *manifest_.name_spaces[mark.name_space].layout;
  const Status proven = prove_block(item.record, entry->payloads, layout);
  if (!proven.ok()) return in_entry(name, proven.error());
  item.record.hash = {};
  item.record.parent = {};
  for (const std::string_view payload : entry->payloads) item.payloads.emplace_back(payload);
  marks_.push_back(mark);
  ++(mark.tail ? counts_.tails : counts_.blocks);
  return item;
}

Status TransferReader::check_chain(const TransferItem& item, Mark& mark) const {
  const BlockRecord& record = item.record;
  const auto name_space = std::find_if(
      manifest_.name_spaces.begin(), manifest_.name_spaces.end(),
      [&record](const TransferNamespace& one) { return one.name == record.name_space; });
  const auto scope = std::find(manifest_.scopes.begin(), manifest_.scopes.end(), record.scope);
  if (name_space == manifest_.name_spaces.end() || !name_space->layout) {
    return {ErrorCode::kCorruption, "the manifest tells no layout of its namespace"};
  }
  if (scope == manifest_.scopes.end()) {
    return {ErrorCode::kCorruption, "the manifest does not tell of its scope"};
  }
  mark.position = record.position;
  mark.scope = static_cast<uint16_t>(scope - manifest_.scopes.begin());
  mark.name_space = static_cast<uint8_t>(name_space - manifest_.name_spaces.begin());
  mark.tail = record.tail;
  if (item.parent == 0) {
    if (record.position == 0) return {};
    return {ErrorCode::kCorruption, "it has no parent, but is no first block"};
  }
  const Mark& above = marks_[item.parent - 1];
  const bool shared_above = manifest_.scopes[above.scope] == kSharedScopeName;
  const bool follows = !above.tail && above.name_space == mark.name_space &&
                       above.position < UINT32_MAX && above.position + 1 == mark.position &&
                       (above.scope == mark.scope || shared_above);
  if (follows) return {};
  return {ErrorCode::kCorruption, "it cannot follow the block that it names as its parent"};
}

Result<TransferItem> TransferReader::conversation(const std::string& name,
                                                  const std::string& body) {
  const std::string_view id = std::string_view(name).substr(name.find('/') + 1);
  Result<Conversation> decoded = decode_conversation_entry(id, body);
  if (!decoded.ok()) return in_entry(name, decoded.error());
  const Conversation& one = *decoded;
  if (!conversations_.insert(one.id).second) return damaged(name, "is there twice");
  const auto& names = manifest_.name_spaces;
  const bool name_known = std::any_of(names.begin(), names.end(), [&one](const auto& known) {
    return known.name == one.name_space;
  });
  const auto& scopes = manifest_.scopes;
  const bool scope_known = std::find(scopes.begin(), scopes.end(), one.scope) != scopes.end();
  if (!name_known || !scope_known) {
    return damaged(name, "the manifest does not tell of its namespace or scope");
  }
  const Status proven = prove_conversation(one);
  if (!proven.ok()) return in_entry(name, proven.error());
  ++counts_.conversations;
  TransferItem item;
  item.kind = TransferKind::kConversation;
  item.conversation = std::move(*decoded);
  return item;
}

Result<TransferItem> TransferReader::end(const std::string& body, const BlockHash& before) {
  TransferItem item;
  item.kind = TransferKind::kEnd;
  EMBER_ASSIGN(item.end, decode_end(body));
  if (item.end.digest != before || !(item.end.counts == counts_)) {
    return damaged(std::string(kEndName), "its sums are not those of the entries before it");
  }
  std::string name;
  std::string more;
  EMBER_ASSIGN(const bool found, take(name, more));
  if (found) return damaged(name, "follows the end");
  ended_ = true;
  return item;
}

}  // namespace ember
