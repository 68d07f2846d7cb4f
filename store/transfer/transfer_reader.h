// Transfer reader: takes apart a file that another store made, and believes nothing of it.
//
// Journey    a file or a pipe -> [transfer_reader] -> import
// Owns       8 bytes for each block met so far, and one entry
// Invariant  what it gives is proven as far as a file can be: the order of its entries, each
//            namespace by its fields and layout, each block by its parent, layout, tokens and the
//            checksums of its decoded groups; nothing is decoded beyond what the layout says
// Threads    one
// Not here   whether the latents are those of the tokens: only who made them knows
//            (docs/security.md); what a store makes of it (store/transfer/import.h)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/transfer/tar_stream.h"
#include "store/transfer/transfer_format.h"

namespace ember {

enum class TransferKind : uint8_t { kTokenizer, kBlock, kConversation, kEnd };

struct TransferItem {
  TransferKind kind = TransferKind::kEnd;
  // kTokenizer: all files of one
  TransferTokenizer tokenizer;
  std::vector<std::pair<std::string, std::string>> files;  // name, bytes
  // kBlock, a tail too: hash, parent and epoch are zeros
  uint64_t number = 0;
  uint64_t parent = 0;  // 0: none
  BlockRecord record;
  std::vector<std::string> payloads;
  Conversation conversation;  // kConversation
  TransferEnd end;            // kEnd
};

class TransferReader {
 public:
  // Reads the manifest. Errors: the source's; kCorruption, kUnsupported, naming the entry.
  static Result<std::unique_ptr<TransferReader>> open(ByteSource source);

  const TransferManifest& manifest() const { return manifest_; }
  // The next item; the last is the end. Errors: as open.
  Result<TransferItem> next();
  const BlockHash& digest() const { return digest_.value(); }  // so far

 private:
  struct Mark {
    uint32_t position = 0;
    uint16_t scope = 0;  // of the manifest's
    uint8_t name_space = 0;
    bool tail = false;
  };
  static_assert(sizeof(Mark) == 8);

  explicit TransferReader(std::unique_ptr<TarReader> tar) : tar_(std::move(tar)) {}
  Status read_manifest();
  Status check_manifest() const;
  // The next entry's name and body; nothing at the end of the archive.
  Result<bool> take(std::string& name, std::string& body);
  uint64_t most_bytes_of(const std::string& name) const;
  Result<TransferItem> tokenizer(const std::string& name, std::string bytes);
  Result<TransferItem> block(const std::string& body);
  Result<TransferItem> conversation(const std::string& name, const std::string& body);
  Result<TransferItem> end(const std::string& body, const BlockHash& before);
  Status check_chain(const TransferItem& item, Mark& mark) const;

  std::unique_ptr<TarReader> tar_;
  TransferManifest manifest_;
  TransferDigest digest_;
  TransferCounts counts_;
  TransferKind rank_ = TransferKind::kTokenizer;  // entries of a kind before it are over
  size_t tokenizers_ = 0;
  bool ended_ = false;
  std::vector<Mark> marks_;
  std::set<std::string> conversations_;
};

}  // namespace ember
