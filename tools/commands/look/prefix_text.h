// Prefix text: the text of token ids that a store holds, with the tokenizer that the store keeps
// for their namespace.
//
// Journey    store_reader (tokens, the namespace's tokenizer) -> [prefix_text] -> ls, tree, show
// Owns       the tokenizers of the namespaces met so far
// Invariant  a namespace without a readable tokenizer has no text; that is no error
// Threads    one
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/text/tokenizer.h"
#include "store/store_reader.h"

namespace ember {

class PrefixText {
 public:
  explicit PrefixText(StoreReader& reader) : reader_(reader) {}

  // As the bytes fall: a block may begin and end within a character.
  std::optional<std::string> of(const NamespaceHash& name_space, TokenSpan tokens);
  // Null where the store keeps none, or one that cannot be read.
  Tokenizer* tokenizer(const NamespaceHash& name_space);

 private:
  StoreReader& reader_;
  std::map<NamespaceHash, std::unique_ptr<Tokenizer>> known_;
};

}  // namespace ember
