// Tokenizer: executes a tokenizer.json as it stands: added tokens, normalizer, pre-tokenizer, BPE,
// and the way back.
//
// Journey    text -> [tokenizer] -> tokens; sampled ids -> [tokenizer] -> text
// Invariant  the ids equal those of the program that the file was made for; a component that this
//            code does not know is an error that names it, never a guess
// Threads    immutable after loading, except that encode() keeps a cache: one object a thread
// Source     the Hugging Face tokenizer.json format; Oniguruma's expressions, as the original
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "prefix_index/token.h"

namespace ember {

// A text in the making. Ids outside the vocabulary are shown as U+FFFD.
class TextStream {
 public:
  virtual ~TextStream() = default;
  // What became certain with `id`; may be empty, never ends in half a character.
  virtual std::string push(TokenId id) = 0;
  // What is left at the end; incomplete characters become U+FFFD.
  virtual std::string finish() = 0;
};

class Tokenizer {
 public:
  // `path`: a tokenizer.json, a gzip of one, or a folder that holds tokenizer.json (or .gz) and
  // perhaps tokenizer_config.json. Errors name the file and the field.
  static Result<std::unique_ptr<Tokenizer>> load(const std::string& path);
  virtual ~Tokenizer() = default;

  // Ids of `text`. Added tokens in the text are recognised. `bos`: as a text that is whole, with
  // the BOS first and with all that the file's template puts before and after it.
  // Errors: kInvalidArgument when text is not UTF-8; kUnsupported from a failing regex.
  virtual Result<std::vector<TokenId>> encode(std::string_view text, bool bos = false) = 0;
  // Text of `ids`. Ids outside the vocabulary are an error that names them.
  virtual Result<std::string> decode(TokenSpan ids, bool skip_special) const = 0;
  // The raw bytes of one id (not always valid UTF-8 alone), special tokens as their text.
  virtual Result<std::string> token_bytes(TokenId id) const = 0;
  // Begins a text that is decoded one id after the other (StreamDecoder).
  virtual std::unique_ptr<TextStream> stream(bool skip_special) const = 0;

  virtual std::optional<TokenId> token_id(std::string_view added_token) const = 0;
  virtual std::optional<TokenId> bos_id() const = 0;  // tokenizer_config.json's bos_token
  // tokenizer_config.json's add_bos_token; without it, whether the file's template adds anything.
  virtual bool adds_bos() const = 0;
  virtual const std::string& chat_template() const = 0;  // tokenizer_config.json's, or empty
  virtual const std::string& bos_text() const = 0;
  virtual const std::string& eos_text() const = 0;
  // Largest id + 1 that the tokenizer knows: ids from here on must never be sampled.
  virtual TokenId vocab_size() const = 0;
};

// Turns sampled ids into text piece by piece and never emits half a character. The tokenizer must
// outlive it.
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
      : stream_(tokenizer.stream(skip_special)) {}
  // The text that became certain with `id`; may be empty.
  std::string push(TokenId id) { return stream_->push(id); }
  // What is left at the end; incomplete characters become U+FFFD.
  std::string finish() { return stream_->finish(); }

 private:
  std::unique_ptr<TextStream> stream_;
};

}  // namespace ember
