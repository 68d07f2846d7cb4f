// Stream decoder: holds back the bytes of a character until the character is whole.
#include <utility>

#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"

namespace ember {

std::string StreamDecoder::push(TokenId id) {
  std::string out;
  const auto bytes = tokenizer_.token_bytes(id);
  if (!bytes.ok()) {
    // An id without text (a model's table may exceed the vocabulary) is shown, not hidden.
    out = finish();
    out += "\xEF\xBF\xBD";
    return out;
  }
  if (skip_special_) {
    const auto kept = tokenizer_.decode(TokenSpan(&id, 1), true);
    if (kept.ok() && kept->empty()) return out;
  }
  pending_ += *bytes;
  take_complete_utf8(pending_, out);
  return out;
}

std::string StreamDecoder::finish() {
  const std::string rest = std::exchange(pending_, {});
  return lossy_utf8(rest);
}

}  // namespace ember
