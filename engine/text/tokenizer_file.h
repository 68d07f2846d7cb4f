// Tokenizer file: what a tokenizer.json says, checked, as plain data.
//
// Journey    none; read once at start, then taken apart by tokenizer.cc
// Invariant  everything in the file is understood: an unknown key, component or option is an error
//            that names it, because ignoring one could change ids in silence
// Not here   doing any of it (normalizer.h, added_tokens.h, pre_tokenizer.h, bpe.h, decoder.h); the
//            JSON library (the .cc)
#pragma once

#include <cstddef>
#include <optional>
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

// What to look for: an Oniguruma expression, or a text as it stands.
struct PatternText {
  std::string text;
  bool literal = false;
};

struct NormalizerStep {
  enum class Kind {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStripAccents,
    kStrip,
    kPrepend,
    kReplace,
    kByteLevel
  };
  Kind kind = Kind::kNfc;
  bool left = false;  // kStrip: which ends
  bool right = false;
  PatternText pattern;  // kReplace
  std::string content;  // kReplace: what takes its place; kPrepend: what comes first
};

// What becomes of a match (or, inverted, of what lies between matches).
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Which pieces get the replacement before them: all, none, or the one that begins the text.
enum class PrependScheme { kAlways, kNever, kFirst };

struct PreTokenizerStep {
  enum class Kind { kSplit, kByteLevel, kMetaspace };
  Kind kind = Kind::kSplit;
  // kSplit
  PatternText pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
  // kByteLevel
  bool add_prefix_space = false;
  bool use_regex = false;
  // kMetaspace
  std::string replacement;  // one character, which stands for a space
  PrependScheme prepend = PrependScheme::kAlways;
  bool cuts = true;  // a piece for each replacement and what follows it
};

struct DecoderStep {
  enum class Kind { kByteLevel, kReplace, kByteFallback, kFuse, kStrip, kMetaspace };
  Kind kind = Kind::kByteLevel;
  PatternText pattern;  // kReplace
  std::string content;  // kReplace: what takes its place; kStrip, kMetaspace: the character
  size_t start = 0;     // kStrip: at most so many characters from either end
  size_t stop = 0;
  bool drops_first = false;  // kMetaspace: the first token loses the character altogether
};

// What stands before and after a text when it is encoded as one that is whole.
struct SpecialFrame {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
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
  bool ignore_merges = false;      // a piece that is in the vocabulary is one token
  bool byte_fallback = false;      // a character without a token becomes its bytes' "<0x..>" tokens
  std::optional<TokenId> unknown;  // what stands for a character without a token
  bool fuse_unknown = false;       // neighbours share one
  std::string continuing_prefix;   // before each character of a piece but the first
  std::string end_suffix;          // after a piece's last character
};

struct TokenizerFile {
  std::vector<AddedToken> added_tokens;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  BpeModel model;
  SpecialFrame frame;
  std::vector<DecoderStep> decoder;
};

// Ids from here on are refused, so that a damaged file cannot ask for a table of any size.
inline constexpr TokenId kMaxTokenId = TokenId{1} << 24;

// `name` stands before each message. Errors: kInvalidArgument for what contradicts the format,
// kUnsupported for what this version does not do; both name the field.
Result<TokenizerFile> parse_tokenizer_file(std::string_view json_text, const std::string& name);

}  // namespace ember
