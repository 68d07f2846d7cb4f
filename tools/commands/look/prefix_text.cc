// Decoding what a store holds.
#include "tools/commands/look/prefix_text.h"

#include <utility>

namespace ember {

Tokenizer* PrefixText::tokenizer(const NamespaceHash& name_space) {
  const auto found = known_.find(name_space);
  if (found != known_.end()) return found->second.get();
  std::unique_ptr<Tokenizer> loaded;
  if (const Result<NamespaceNote> note = reader_.name_space(name_space);
      note.ok() && !note->tokenizer_folder.empty()) {
    if (Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::load(note->tokenizer_folder);
        tokenizer.ok()) {
      loaded = std::move(tokenizer).value();
    }
  }
  return known_.emplace(name_space, std::move(loaded)).first->second.get();
}

std::optional<std::string> PrefixText::of(const NamespaceHash& name_space, TokenSpan tokens) {
  const Tokenizer* known = tokenizer(name_space);
  if (known == nullptr) return std::nullopt;
  std::string text;
  for (const TokenId id : tokens) {
    Result<std::string> bytes = known->token_bytes(id);
    if (!bytes.ok()) return std::nullopt;
    text += *bytes;
  }
  return text;
}

}  // namespace ember
