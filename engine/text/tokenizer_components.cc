// Tokenizer components: one small reader for each type; a table says which reads what.
#include "engine/text/tokenizer_components.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/text/regex.h"
#include "engine/text/utf8.h"

namespace ember {
namespace {

constexpr int kMaxNesting = 32;  // Sequences inside Sequences
constexpr int kMaxStripped = 1 << 16;

Result<std::string> type_of(const JsonView& component) {
  EMBER_ASSIGN(const JsonView type, component.member("type"));
  return type.string();
}

// A component that is a Sequence is its list under `key`, however deep; all others go to `one`.
using Reader = std::function<Status(const JsonView& view, const std::string& type)>;
Status for_each_component(const JsonView& view, std::string_view key, const Reader& one,
                          int depth = 0) {
  if (view.is_null()) return {};
  EMBER_ASSIGN(const std::string type, type_of(view));
  if (type != "Sequence" || depth == kMaxNesting) return one(view, type);
  EMBER_TRY(view.expect_keys({"type", key}));
  EMBER_ASSIGN(const JsonView list, view.member(key));
  EMBER_TRY(list.expect_array());
  for (size_t i = 0; i < list.value().size(); ++i) {
    EMBER_TRY(for_each_component(list.element(i), key, one, depth + 1));
  }
  return {};
}

Result<PatternText> parse_pattern(const JsonView& view) {
  EMBER_TRY(view.expect_keys({"Regex", "String"}));
  if (view.value().size() != 1) return view.wrong("{\"Regex\": ...} or {\"String\": ...}");
  PatternText pattern;
  pattern.literal = !view.find("Regex");
  EMBER_ASSIGN(const JsonView text, view.member(pattern.literal ? "String" : "Regex"));
  EMBER_ASSIGN(pattern.text, text.string());
  if (const auto regex = Regex::compile(pattern); !regex.ok()) {
    return Error{regex.error().code, view.place() + ": " + regex.error().message};
  }
  return pattern;
}

Result<bool> flag(const JsonView& view, std::string_view key) {
  EMBER_ASSIGN(const JsonView member, view.member(key));
  return member.boolean();
}

Result<bool> flag_or(const JsonView& view, std::string_view key, bool otherwise) {
  const std::optional<JsonView> member = view.find(key);
  if (!member) return otherwise;
  return member->boolean();
}

Result<std::string> text(const JsonView& view, std::string_view key) {
  EMBER_ASSIGN(const JsonView member, view.member(key));
  return member.string();
}

Result<std::string> character(const JsonView& view, std::string_view key) {
  EMBER_ASSIGN(const JsonView member, view.member(key));
  EMBER_ASSIGN(std::string found, member.string());
  if (found.empty() || utf8_step(found).length != found.size()) return member.wrong("a character");
  return found;
}

// Replace is a normalizer and a decoder alike.
template <typename Step>
Status parse_replace(const JsonView& view, Step& step) {
  EMBER_TRY(view.expect_keys({"type", "pattern", "content"}));
  EMBER_ASSIGN(const JsonView pattern, view.member("pattern"));
  EMBER_ASSIGN(step.pattern, parse_pattern(pattern));
  EMBER_ASSIGN(step.content, text(view, "content"));
  return {};
}

// Normalizers

Status parse_strip(const JsonView& view, NormalizerStep& step) {
  EMBER_TRY(view.expect_keys({"type", "strip_left", "strip_right"}));
  EMBER_ASSIGN(step.left, flag(view, "strip_left"));
  EMBER_ASSIGN(step.right, flag(view, "strip_right"));
  return {};
}

Status parse_prepend(const JsonView& view, NormalizerStep& step) {
  EMBER_TRY(view.expect_keys({"type", "prepend"}));
  EMBER_ASSIGN(step.content, text(view, "prepend"));
  return {};
}

Result<NormalizerStep> parse_normalizer_step(const JsonView& view, const std::string& type) {
  using Kind = NormalizerStep::Kind;
  constexpr std::pair<std::string_view, Kind> kKinds[] = {{"NFC", Kind::kNfc},
                                                          {"NFD", Kind::kNfd},
                                                          {"NFKC", Kind::kNfkc},
                                                          {"NFKD", Kind::kNfkd},
                                                          {"Lowercase", Kind::kLowercase},
                                                          {"StripAccents", Kind::kStripAccents},
                                                          {"Strip", Kind::kStrip},
                                                          {"Prepend", Kind::kPrepend},
                                                          {"Replace", Kind::kReplace},
                                                          {"ByteLevel", Kind::kByteLevel}};
  for (const auto& [name, kind] : kKinds) {
    if (type != name) continue;
    NormalizerStep step;
    step.kind = kind;
    const Status read = kind == Kind::kStrip     ? parse_strip(view, step)
                        : kind == Kind::kPrepend ? parse_prepend(view, step)
                        : kind == Kind::kReplace ? parse_replace(view, step)
                                                 : view.expect_keys({"type"});
    if (!read.ok()) return read.error();
    return step;
  }
  return view.unsupported("the normalizer " + type);
}

// Pre-tokenizers

Result<SplitBehavior> parse_behavior(const JsonView& view) {
  constexpr std::pair<std::string_view, SplitBehavior> kBehaviors[] = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  EMBER_ASSIGN(const std::string found, view.string());
  for (const auto& [name, behavior] : kBehaviors) {
    if (found == name) return behavior;
  }
  return view.unsupported("the behavior " + found);
}

Status parse_split(const JsonView& view, PreTokenizerStep& step) {
  EMBER_TRY(view.expect_keys({"type", "pattern", "behavior", "invert"}));
  EMBER_ASSIGN(const JsonView pattern, view.member("pattern"));
  EMBER_ASSIGN(step.pattern, parse_pattern(pattern));
  EMBER_ASSIGN(const JsonView behavior, view.member("behavior"));
  EMBER_ASSIGN(step.behavior, parse_behavior(behavior));
  EMBER_ASSIGN(step.invert, flag(view, "invert"));
  return {};
}

// Digits is a Split by numeric characters.
Status parse_digits(const JsonView& view, PreTokenizerStep& step) {
  EMBER_TRY(view.expect_keys({"type", "individual_digits"}));
  EMBER_ASSIGN(const bool individual, flag_or(view, "individual_digits", false));
  step.pattern = {R"(\p{N})"};
  step.behavior = individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  return {};
}

// So are these two, which leave out what they find.
Status parse_white_space_split(const JsonView& view, PreTokenizerStep& step) {
  EMBER_TRY(view.expect_keys({"type"}));
  step.pattern = {R"(\s+)"};
  step.behavior = SplitBehavior::kRemoved;
  return {};
}

Status parse_delimiter_split(const JsonView& view, PreTokenizerStep& step) {
  EMBER_TRY(view.expect_keys({"type", "delimiter"}));
  EMBER_ASSIGN(step.pattern.text, character(view, "delimiter"));
  step.pattern.literal = true;
  step.behavior = SplitBehavior::kRemoved;
  return {};
}

Status parse_byte_level(const JsonView& view, PreTokenizerStep& step) {
  EMBER_TRY(view.expect_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  step.kind = PreTokenizerStep::Kind::kByteLevel;
  EMBER_ASSIGN(step.add_prefix_space, flag(view, "add_prefix_space"));
  EMBER_ASSIGN(step.use_regex, flag_or(view, "use_regex", true));
  return {};
}

// A Metaspace of either kind. Old files say add_prefix_space where new ones name a scheme.
struct Metaspace {
  std::string replacement;
  PrependScheme prepend = PrependScheme::kAlways;
  bool cuts = true;
};
Result<Metaspace> parse_metaspace(const JsonView& view) {
  EMBER_TRY(view.expect_keys(
      {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"}));
  constexpr std::pair<std::string_view, PrependScheme> kSchemes[] = {
      {"always", PrependScheme::kAlways},
      {"never", PrependScheme::kNever},
      {"first", PrependScheme::kFirst}};
  Metaspace found;
  EMBER_ASSIGN(found.replacement, character(view, "replacement"));
  EMBER_ASSIGN(found.cuts, flag_or(view, "split", true));
  EMBER_ASSIGN(const bool adds, flag_or(view, "add_prefix_space", true));
  if (const std::optional<JsonView> scheme = view.find("prepend_scheme")) {
    EMBER_ASSIGN(const std::string name, scheme->string());
    const auto* known = std::find_if(std::begin(kSchemes), std::end(kSchemes),
                                     [&](const auto& one) { return one.first == name; });
    if (known == std::end(kSchemes)) return scheme->unsupported("the scheme " + name);
    found.prepend = known->second;
    if (!adds && found.prepend != PrependScheme::kNever) {
      return scheme->wrong("\"never\", as add_prefix_space is false");
    }
  } else if (!adds) {
    found.prepend = PrependScheme::kNever;
  }
  return found;
}

Status parse_metaspace_split(const JsonView& view, PreTokenizerStep& step) {
  EMBER_ASSIGN(Metaspace found, parse_metaspace(view));
  step.kind = PreTokenizerStep::Kind::kMetaspace;
  step.replacement = std::move(found.replacement);
  step.prepend = found.prepend;
  step.cuts = found.cuts;
  return {};
}

Result<PreTokenizerStep> parse_pre_tokenizer_step(const JsonView& view, const std::string& type) {
  constexpr std::pair<std::string_view, Status (*)(const JsonView&, PreTokenizerStep&)> kReaders[] =
      {{"Split", parse_split},
       {"Digits", parse_digits},
       {"WhitespaceSplit", parse_white_space_split},
       {"CharDelimiterSplit", parse_delimiter_split},
       {"ByteLevel", parse_byte_level},
       {"Metaspace", parse_metaspace_split}};
  for (const auto& [name, read] : kReaders) {
    if (type != name) continue;
    PreTokenizerStep step;
    EMBER_TRY(read(view, step));
    return step;
  }
  return view.unsupported("the pre-tokenizer " + type);
}

// Decoders

Status parse_decoder_strip(const JsonView& view, DecoderStep& step) {
  EMBER_TRY(view.expect_keys({"type", "content", "start", "stop"}));
  EMBER_ASSIGN(step.content, character(view, "content"));
  for (const auto& [key, place] :
       {std::pair("start", &step.start), std::pair("stop", &step.stop)}) {
    EMBER_ASSIGN(const JsonView member, view.member(key));
    EMBER_ASSIGN(const int count, member.index_below(kMaxStripped));
    *place = static_cast<size_t>(count);
  }
  return {};
}

Status parse_decoder_metaspace(const JsonView& view, DecoderStep& step) {
  EMBER_ASSIGN(Metaspace found, parse_metaspace(view));
  step.content = std::move(found.replacement);
  step.drops_first = found.prepend != PrependScheme::kNever;
  return {};
}

Result<DecoderStep> parse_decoder_step(const JsonView& view, const std::string& type) {
  using Kind = DecoderStep::Kind;
  constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"ByteLevel", Kind::kByteLevel}, {"Replace", Kind::kReplace},
      {"Fuse", Kind::kFuse},           {"ByteFallback", Kind::kByteFallback},
      {"Strip", Kind::kStrip},         {"Metaspace", Kind::kMetaspace}};
  for (const auto& [name, kind] : kKinds) {
    if (type != name) continue;
    DecoderStep step;
    step.kind = kind;
    const Status read =
        kind == Kind::kReplace     ? parse_replace(view, step)
        : kind == Kind::kStrip     ? parse_decoder_strip(view, step)
        : kind == Kind::kMetaspace ? parse_decoder_metaspace(view, step)
        : kind == Kind::kByteLevel
            ? view.expect_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"})
            : view.expect_keys({"type"});
    if (!read.ok()) return read.error();
    return step;
  }
  return view.unsupported("the decoder " + type);
}

// Post-processors

// The ids of the special token that a template names.
Result<std::vector<TokenId>> special_ids(const JsonView& tokens, const JsonView& piece) {
  EMBER_ASSIGN(const std::string name, text(piece, "id"));
  const std::optional<JsonView> token = tokens.find(name);
  if (!token) return piece.wrong("an id of special_tokens");
  EMBER_ASSIGN(const JsonView list, token->member("ids"));
  EMBER_TRY(list.expect_array());
  std::vector<TokenId> ids;
  for (size_t i = 0; i < list.value().size(); ++i) {
    EMBER_ASSIGN(const TokenId id, list.element(i).index_below(kMaxTokenId));
    ids.push_back(id);
  }
  return ids;
}

Status parse_template(const JsonView& view, SpecialFrame& frame) {
  EMBER_TRY(view.expect_keys({"type", "single", "pair", "special_tokens"}));
  EMBER_ASSIGN(const JsonView pieces, view.member("single"));
  EMBER_TRY(pieces.expect_array());
  EMBER_ASSIGN(const JsonView tokens, view.member("special_tokens"));
  EMBER_TRY(tokens.expect_object());
  SpecialFrame own;
  bool text_seen = false;
  for (size_t i = 0; i < pieces.value().size(); ++i) {
    const JsonView piece = pieces.element(i);
    EMBER_TRY(piece.expect_keys({"SpecialToken", "Sequence"}));
    if (piece.find("Sequence")) {
      if (text_seen) return piece.unsupported("a second Sequence");
      text_seen = true;
      continue;
    }
    EMBER_ASSIGN(const JsonView special, piece.member("SpecialToken"));
    EMBER_ASSIGN(const auto ids, special_ids(tokens, special));
    auto& side = text_seen ? own.after : own.before;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (!text_seen) return pieces.wrong("a Sequence among them");
  frame.before.insert(frame.before.begin(), own.before.begin(), own.before.end());
  frame.after.insert(frame.after.end(), own.after.begin(), own.after.end());
  return {};
}

}  // namespace

Status parse_normalizer(const JsonView& view, std::vector<NormalizerStep>& steps) {
  return for_each_component(view, "normalizers",
                            [&](const JsonView& one, const std::string& type) -> Status {
                              EMBER_ASSIGN(NormalizerStep step, parse_normalizer_step(one, type));
                              steps.push_back(std::move(step));
                              return {};
                            });
}

Status parse_pre_tokenizer(const JsonView& view, std::vector<PreTokenizerStep>& steps) {
  return for_each_component(
      view, "pretokenizers", [&](const JsonView& one, const std::string& type) -> Status {
        EMBER_ASSIGN(PreTokenizerStep step, parse_pre_tokenizer_step(one, type));
        steps.push_back(std::move(step));
        return {};
      });
}

Status parse_decoder(const JsonView& view, std::vector<DecoderStep>& steps) {
  return for_each_component(view, "decoders",
                            [&](const JsonView& one, const std::string& type) -> Status {
                              EMBER_ASSIGN(DecoderStep step, parse_decoder_step(one, type));
                              steps.push_back(std::move(step));
                              return {};
                            });
}

Status parse_post_processor(const JsonView& view, SpecialFrame& frame) {
  return for_each_component(view, "processors",
                            [&](const JsonView& one, const std::string& type) -> Status {
                              // A ByteLevel only trims offsets, which nobody asks for here.
                              if (type == "ByteLevel") return {};
                              if (type == "TemplateProcessing") return parse_template(one, frame);
                              return one.unsupported("the post-processor " + type);
                            });
}

}  // namespace ember
