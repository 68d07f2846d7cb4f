// Added tokens: a byte tree, and what lstrip, rstrip and single_word do to a match.
#include "engine/text/added_tokens.h"

#include <utility>

#include "engine/text/unicode_forms.h"
#include "engine/text/utf8.h"

namespace ember {
namespace {

// A word character as Rust's regular expressions have it: Oniguruma's, and the two joiners.
constexpr std::string_view kWordPattern = R"(\A[\w\x{200C}\x{200D}]\z)";

// Where the white space that ends [begin, end) of `text` begins.
size_t trailing_space_begin(std::string_view text, size_t begin, size_t end) {
  while (begin < end) {
    const size_t last = last_character(text.substr(0, end));
    if (!is_white_space(first_code_point(text.substr(last)))) break;
    end = last;
  }
  return end;
}

// How many bytes of white space `text` begins with.
size_t leading_space_size(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && is_white_space(first_code_point(text.substr(at)))) {
    at += utf8_step(text.substr(at)).length;
  }
  return at;
}

}  // namespace

void AddedTokens::Tree::add(const AddedToken& token, std::string_view written) {
  size_t node = 0;
  for (const char byte : written) {
    const auto [place, is_new] = edges_.try_emplace(edge(node, byte), nodes_.size());
    if (is_new) nodes_.emplace_back();
    node = place->second;
  }
  nodes_[node].token = static_cast<int32_t>(tokens_.size());
  first_byte_[static_cast<uint8_t>(written.front())] = true;
  tokens_.push_back(token);
  tokens_.back().content = std::string(written);
}

const AddedToken* AddedTokens::Tree::longest_at(std::string_view text, size_t at) const {
  if (!first_byte_[static_cast<uint8_t>(text[at])]) return nullptr;
  const AddedToken* longest = nullptr;
  size_t node = 0;
  for (; at < text.size(); ++at) {
    const auto place = edges_.find(edge(node, text[at]));
    if (place == edges_.end()) break;
    node = place->second;
    const int32_t token = nodes_[node].token;
    if (token >= 0) longest = &tokens_[static_cast<size_t>(token)];
  }
  return longest;
}

Result<std::string> AddedTokens::written_form(const AddedToken& token, Normalizer& normalizer) {
  NormalizedText content{token.content};
  if (token.normalized) EMBER_TRY(normalizer.run(content));
  return std::move(content.text);
}

Result<AddedTokens> AddedTokens::build(const std::vector<AddedToken>& tokens,
                                       Normalizer& normalizer) {
  EMBER_ASSIGN(Regex word, Regex::compile(kWordPattern));
  AddedTokens built(std::move(word));
  for (const AddedToken& token : tokens) {
    EMBER_ASSIGN(const std::string written, written_form(token, normalizer));
    if (!written.empty()) (token.normalized ? built.normalized_ : built.raw_).add(token, written);
  }
  return built;
}

Result<std::vector<AddedTokens::Part>> AddedTokens::split(std::string_view text) {
  std::vector<Part> parts;
  EMBER_TRY(split_by(raw_, text, parts));
  return parts;
}

Result<std::vector<AddedTokens::Part>> AddedTokens::split_normalized(std::string_view gap) {
  std::vector<Part> parts;
  EMBER_TRY(split_by(normalized_, gap, parts));
  return parts;
}

Status AddedTokens::split_by(const Tree& tree, std::string_view text, std::vector<Part>& out) {
  size_t done = 0;       // up to here the text is in `out`
  size_t space_end = 0;  // where the white space that was last looked at ends
  size_t at = 0;
  while (at < text.size()) {
    const AddedToken* token = tree.longest_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = begin + token->content.size();
    at = end;
    if (token->single_word) {
      EMBER_ASSIGN(const bool alone, stands_alone(text, begin, end));
      if (!alone) continue;
    }
    if (token->lstrip) begin = begin < done ? done : trailing_space_begin(text, done, begin);
    if (token->rstrip) {
      if (space_end < end) space_end = end + leading_space_size(text.substr(end));
      end = space_end;
    }
    if (done < begin) out.push_back({done, begin, std::nullopt});
    // What an earlier token swallowed whole (rstrip, then lstrip) is gone, as in the original.
    if (begin < end) out.push_back({begin, end, token->id});
    done = end;  // which may step back into swallowed white space: what follows there counts
  }
  if (done < text.size()) out.push_back({done, text.size(), std::nullopt});
  return {};
}

Result<bool> AddedTokens::stands_alone(std::string_view text, size_t begin, size_t end) {
  const std::string_view before = text.substr(0, begin);
  const std::string_view after = text.substr(end);
  if (!before.empty()) {
    EMBER_ASSIGN(const bool word, is_word(before.substr(last_character(before))));
    if (word) return false;
  }
  if (!after.empty()) {
    EMBER_ASSIGN(const bool word, is_word(after.substr(0, utf8_step(after).length)));
    if (word) return false;
  }
  return true;
}

Result<bool> AddedTokens::is_word(std::string_view character) {
  EMBER_TRY(word_.find_all(character, matches_));
  return !matches_.empty();
}

}  // namespace ember
