// Added tokens: finds them in text, before anything else looks at it.
//
// Journey    text -> [added_tokens] -> ids and the text between -> normalizer -> [added_tokens]
//            -> ids and the text between -> pre_tokenizer
// Invariant  leftmost, then longest, never overlapping; one pass for the tokens that are not
//            normalized, then one inside each normalized gap for those that are
// Threads    one object a thread (an expression keeps scratch)
// Source     the flags as the tokenizers package reads them
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/text/normalizer.h"
#include "engine/text/regex.h"
#include "engine/text/tokenizer_file.h"

namespace ember {

class AddedTokens {
 public:
  // A part of the text: an added token, or text to tokenize.
  struct Part {
    size_t begin;
    size_t end;
    std::optional<TokenId> id;
  };

  // What a token is looked for as, and decoded to: a normalized one as `normalizer` writes it.
  static Result<std::string> written_form(const AddedToken& token, Normalizer& normalizer);
  // `normalizer` is what gaps go through. Errors: kUnsupported when an expression gives up.
  static Result<AddedTokens> build(const std::vector<AddedToken>& tokens, Normalizer& normalizer);
  // The parts of `text` in order; none is empty, except that nothing gives nothing.
  // Errors: kUnsupported when an expression gives up.
  Result<std::vector<Part>> split(std::string_view text);
  // The same in a gap that was normalized.
  Result<std::vector<Part>> split_normalized(std::string_view gap);

 private:
  // A byte-wise tree over the contents of one kind of tokens.
  class Tree {
   public:
    void add(const AddedToken& token, std::string_view written);
    // The longest token that begins at `at`, or null.
    const AddedToken* longest_at(std::string_view text, size_t at) const;

   private:
    struct Node {
      int32_t token = -1;  // index in tokens_
    };
    static uint64_t edge(size_t node, char byte) {
      return (static_cast<uint64_t>(node) << 8) | static_cast<uint8_t>(byte);
    }
    std::vector<AddedToken> tokens_;
    std::vector<Node> nodes_ = {Node{}};
    std::unordered_map<uint64_t, size_t> edges_;
    std::vector<bool> first_byte_ = std::vector<bool>(256, false);
  };

  explicit AddedTokens(Regex word) : word_(std::move(word)) {}
  Status split_by(const Tree& tree, std::string_view text, std::vector<Part>& out);
  Result<bool> stands_alone(std::string_view text, size_t begin, size_t end);
  Result<bool> is_word(std::string_view character);

  Tree raw_;
  Tree normalized_;
  Regex word_;  // one word character
  std::vector<Regex::Match> matches_;
};

}  // namespace ember
