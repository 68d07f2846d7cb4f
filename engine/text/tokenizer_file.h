// Tokenizer file: what a tokenizer.json says, checked, as plain data.
//
// Journey    none; read once at start, then taken apart by tokenizer.cc
// Invariant  everything in the file is understood: an unknown key, component or option is an error
//            that names it, because ignoring one could change ids in silence
// Not here   doing any of it (added_tokens.h, pre_tokenizer.h, bpe.h); the JSON library (the .cc)
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "prefix_index/token.h"

namespace ember {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // swallows white space before it
  bool rstrip = false;       // and after it
  bool normalized = false;   // looked for after those that are not
  bool special = false;      // left out by decode(skip_special)
};

// What becomes of a match (or, inverted, of what lies between matches).
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct PreTokenizerStep {
  enum class Kind { kSplit, kByteLevel };
  Kind kind = Kind::kSplit;
  // kSplit
  std::string pattern;  // an Oniguruma expression
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
  // kByteLevel
  bool add_prefix_space = false;
  bool use_regex = false;
};

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using Vocabulary = std::unordered_map<std::string, TokenId, StringHash, std::equal_to<>>;

// Two neighbours that become one; the rank is the place in the list.
struct BpeMerge {
  TokenId left;
  TokenId right;
  TokenId result;
};

struct BpeModel {
  Vocabulary vocabulary;
  std::vector<BpeMerge> merges;
  bool ignore_merges = false;  // a piece that is in the vocabulary is one token
};

struct TokenizerFile {
  std::vector<AddedToken> added_tokens;
  std::vector<PreTokenizerStep> pre_tokenizer;
  BpeModel model;
};

// Ids from here on are refused, so that a damaged file cannot ask for a table of any size.
inline constexpr TokenId kMaxTokenId = TokenId{1} << 24;

// `name` stands before each message. Errors: kInvalidArgument for what contradicts the format,
// kUnsupported for what this version does not do; both name the field.
Result<TokenizerFile> parse_tokenizer_file(std::string_view json_text, const std::string& name);

}  // namespace ember
