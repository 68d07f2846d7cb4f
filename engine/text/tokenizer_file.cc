// Tokenizer file: reads a tokenizer.json component by component and refuses what it does not know.
#include "engine/text/tokenizer_file.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "engine/text/json_view.h"
#include "engine/text/regex.h"

namespace ember {
namespace {

constexpr int kMaxNesting = 32;  // Sequences inside Sequences

Status expect_default(const JsonView& object, std::initializer_list<std::string_view> options) {
  for (const std::string_view key : options) {
    const std::optional<JsonView> option = object.find(key);
    if (!option) continue;
    const Json& value = option->value();
    const bool off = value == false || value == "" || value == 0;
    if (!off) return option->unsupported(std::string(key) + " = " + value.dump());
  }
  return {};
}

Result<AddedToken> parse_added_token(const JsonView& view) {
  EMBER_TRY(view.expect_keys(
      {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  AddedToken token;
  EMBER_ASSIGN(const JsonView id, view.member("id"));
  EMBER_ASSIGN(token.id, id.index_below(kMaxTokenId));
  EMBER_ASSIGN(const JsonView content, view.member("content"));
  EMBER_ASSIGN(token.content, content.string());
  if (token.content.empty()) return content.wrong("a text that is not empty");
  const std::pair<const char*, bool*> flags[] = {{"single_word", &token.single_word},
                                                 {"lstrip", &token.lstrip},
                                                 {"rstrip", &token.rstrip},
                                                 {"normalized", &token.normalized},
                                                 {"special", &token.special}};
  for (const auto& [key, flag] : flags) {
    EMBER_ASSIGN(const JsonView member, view.member(key));
    EMBER_ASSIGN(*flag, member.boolean());
  }
  return token;
}

// The ids must be those that the original hands out: the vocabulary's own, or the next free one.
Status check_added_ids(const JsonView& list, const TokenizerFile& file) {
  std::unordered_set<std::string> seen;
  const Vocabulary& vocabulary = file.model.vocabulary;
  const auto vocabulary_count = static_cast<TokenId>(vocabulary.size());
  TokenId greatest = -1;
  for (size_t i = 0; i < file.added_tokens.size(); ++i) {
    const AddedToken& token = file.added_tokens[i];
    const JsonView view = list.element(i);
    if (!seen.insert(token.content).second) {
      return view.wrong("no second token \"" + token.content + "\"");
    }
    const auto known = vocabulary.find(token.content);
    const TokenId expected =
        known != vocabulary.end() ? known->second : std::max(greatest + 1, vocabulary_count);
    if (token.id != expected) {
      return Error{ErrorCode::kInvalidArgument,
                   view.place() + ".id: found " + std::to_string(token.id) + " for \"" +
                       token.content + "\", expected " + std::to_string(expected) +
                       " (the vocabulary's id, or the next free one)"};
    }
    greatest = std::max(greatest, token.id);
  }
  return {};
}

Status parse_added_tokens(const JsonView& root, TokenizerFile& file) {
  const std::optional<JsonView> list = root.find("added_tokens");
  if (!list) return {};
  EMBER_TRY(list->expect_array());
  for (size_t i = 0; i < list->value().size(); ++i) {
    EMBER_ASSIGN(AddedToken token, parse_added_token(list->element(i)));
    file.added_tokens.push_back(std::move(token));
  }
  return check_added_ids(*list, file);
}

Result<std::string> type_of(const JsonView& component) {
  EMBER_ASSIGN(const JsonView type, component.member("type"));
  return type.string();
}

// Null, or Sequences of nothing: text stays as it is.
Status check_normalizer(const JsonView& view, int depth = 0) {
  if (view.is_null()) return {};
  EMBER_ASSIGN(const std::string type, type_of(view));
  if (type != "Sequence" || depth == kMaxNesting) {
    return view.unsupported("the normalizer " + type);
  }
  EMBER_TRY(view.expect_keys({"type", "normalizers"}));
  EMBER_ASSIGN(const JsonView list, view.member("normalizers"));
  EMBER_TRY(list.expect_array());
  for (size_t i = 0; i < list.value().size(); ++i) {
    EMBER_TRY(check_normalizer(list.element(i), depth + 1));
  }
  return {};
}

Result<std::string> parse_pattern(const JsonView& view) {
  EMBER_TRY(view.expect_keys({"Regex", "String"}));
  if (view.value().size() != 1) return view.wrong("{\"Regex\": ...} or {\"String\": ...}");
  if (const std::optional<JsonView> regex = view.find("Regex")) return regex->string();
  EMBER_ASSIGN(const JsonView text, view.member("String"));
  EMBER_ASSIGN(const std::string literal, text.string());
  return Regex::literal(literal);
}

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

Result<PreTokenizerStep> parse_split(const JsonView& view) {
  EMBER_TRY(view.expect_keys({"type", "pattern", "behavior", "invert"}));
  PreTokenizerStep step;
  EMBER_ASSIGN(const JsonView pattern, view.member("pattern"));
  EMBER_ASSIGN(step.pattern, parse_pattern(pattern));
  EMBER_ASSIGN(const JsonView behavior, view.member("behavior"));
  EMBER_ASSIGN(step.behavior, parse_behavior(behavior));
  EMBER_ASSIGN(const JsonView invert, view.member("invert"));
  EMBER_ASSIGN(step.invert, invert.boolean());
  return step;
}

// Digits is a Split by numeric characters.
Result<PreTokenizerStep> parse_digits(const JsonView& view) {
  EMBER_TRY(view.expect_keys({"type", "individual_digits"}));
  bool individual = false;
  if (const std::optional<JsonView> member = view.find("individual_digits")) {
    EMBER_ASSIGN(individual, member->boolean());
  }
  PreTokenizerStep step;
  step.pattern = R"(\p{N})";
  step.behavior = individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  return step;
}

Result<PreTokenizerStep> parse_byte_level(const JsonView& view) {
  EMBER_TRY(view.expect_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  PreTokenizerStep step;
  step.kind = PreTokenizerStep::Kind::kByteLevel;
  EMBER_ASSIGN(const JsonView prefix, view.member("add_prefix_space"));
  EMBER_ASSIGN(step.add_prefix_space, prefix.boolean());
  step.use_regex = true;
  if (const std::optional<JsonView> member = view.find("use_regex")) {
    EMBER_ASSIGN(step.use_regex, member->boolean());
  }
  return step;
}

Status parse_pre_tokenizer(const JsonView& view, std::vector<PreTokenizerStep>& steps,
                           int depth = 0) {
  if (view.is_null()) return {};
  EMBER_ASSIGN(const std::string type, type_of(view));
  if (type == "Sequence" && depth < kMaxNesting) {
    EMBER_TRY(view.expect_keys({"type", "pretokenizers"}));
    EMBER_ASSIGN(const JsonView list, view.member("pretokenizers"));
    EMBER_TRY(list.expect_array());
    for (size_t i = 0; i < list.value().size(); ++i) {
      EMBER_TRY(parse_pre_tokenizer(list.element(i), steps, depth + 1));
    }
    return {};
  }
  auto step = type == "Split"    ? parse_split(view)
              : type == "Digits" ? parse_digits(view)
              : type == "ByteLevel"
                  ? parse_byte_level(view)
                  : Result<PreTokenizerStep>(view.unsupported("the pre-tokenizer " + type));
  if (!step.ok()) return step.error();
  if (const auto regex = Regex::compile(step->pattern); !regex.ok()) {
    return Error{regex.error().code, view.place() + ": " + regex.error().message};
  }
  steps.push_back(std::move(*step));
  return {};
}

// Neither changes ids: a ByteLevel post-processor trims offsets, which nobody asks for here.
Status check_post_processor_and_decoder(const JsonView& root) {
  if (const std::optional<JsonView> post = root.find("post_processor")) {
    EMBER_ASSIGN(const std::string type, type_of(*post));
    if (type != "ByteLevel") return post->unsupported("the post-processor " + type);
  }
  EMBER_ASSIGN(const JsonView decoder, root.member("decoder"));
  if (decoder.is_null()) return decoder.wrong("a ByteLevel decoder");
  EMBER_ASSIGN(const std::string type, type_of(decoder));
  if (type != "ByteLevel") return decoder.unsupported("the decoder " + type);
  return {};
}

Status parse_vocabulary(const JsonView& model, Vocabulary& vocabulary) {
  EMBER_ASSIGN(const JsonView view, model.member("vocab"));
  EMBER_TRY(view.expect_object());
  std::unordered_map<TokenId, const std::string*> owners;
  vocabulary.reserve(view.value().size());
  owners.reserve(view.value().size());
  for (const auto& [token, id_value] : view.value().items()) {
    const JsonView entry = view.entry(token, id_value);
    EMBER_ASSIGN(const TokenId id, entry.index_below(kMaxTokenId));
    const auto [owner, is_new] = owners.emplace(id, &token);
    if (!is_new) return entry.wrong("an id that no other token has");
    vocabulary.emplace(token, id);
  }
  return {};
}

// A merge as a pair of strings: ["a", "b"], or "a b" in older files.
Result<std::pair<std::string, std::string>> parse_pair(const JsonView& view) {
  const Json& value = view.value();
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
    return std::pair(value[0].get<std::string>(), value[1].get<std::string>());
  }
  const std::string expected = "\"left right\" or [\"left\", \"right\"]";
  if (!value.is_string()) return view.wrong(expected);
  const auto& text = value.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    return view.wrong(expected);
  }
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

Status parse_merges(const JsonView& model, BpeModel& out) {
  EMBER_ASSIGN(const JsonView list, model.member("merges"));
  EMBER_TRY(list.expect_array());
  const size_t count = list.value().size();
  out.merges.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const JsonView view = list.element(i);
    const Json& value = view.value();
    const bool header =
        value.is_string() && value.get_ref<const std::string&>().compare(0, 8, "#version") == 0;
    if (header) continue;
    if (value.type() != list.value()[0].type()) return view.wrong("the form of the first merge");
    EMBER_ASSIGN(const auto pair, parse_pair(view));
    const std::string joined = pair.first + pair.second;
    const auto left = out.vocabulary.find(pair.first);
    const auto right = out.vocabulary.find(pair.second);
    const auto result = out.vocabulary.find(joined);
    if (left == out.vocabulary.end() || right == out.vocabulary.end() ||
        result == out.vocabulary.end()) {
      return view.wrong("two tokens of the vocabulary that join to a third");
    }
    out.merges.push_back({left->second, right->second, result->second});
  }
  return {};
}

Status parse_model(const JsonView& view, BpeModel& model) {
  EMBER_TRY(view.expect_object());
  // Old files name no type; what has merges is BPE.
  if (view.value().contains("type") || !view.value().contains("merges")) {
    EMBER_ASSIGN(const std::string type, type_of(view));
    if (type != "BPE") return view.unsupported("the model " + type);
  }
  EMBER_TRY(view.expect_keys({"type", "dropout", "unk_token", "continuing_subword_prefix",
                              "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
                              "vocab", "merges"}));
  if (const std::optional<JsonView> unknown = view.find("unk_token")) {
    return unknown->unsupported("unk_token = " + unknown->value().dump());
  }
  EMBER_TRY(expect_default(view, {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                  "fuse_unk", "byte_fallback"}));
  if (const std::optional<JsonView> ignore = view.find("ignore_merges")) {
    EMBER_ASSIGN(model.ignore_merges, ignore->boolean());
  }
  EMBER_TRY(parse_vocabulary(view, model.vocabulary));
  return parse_merges(view, model);
}

}  // namespace

Result<TokenizerFile> parse_tokenizer_file(std::string_view json_text, const std::string& name) {
  EMBER_ASSIGN(const Json document, parse_json(json_text, name));
  const JsonView root(document, name);
  EMBER_TRY(root.expect_keys({"version", "truncation", "padding", "added_tokens", "normalizer",
                              "pre_tokenizer", "post_processor", "decoder", "model"}));
  for (const std::string_view key : {"truncation", "padding"}) {
    if (const auto option = root.find(key)) return option->unsupported(std::string(key));
  }
  TokenizerFile file;
  if (const auto normalizer = root.find("normalizer")) EMBER_TRY(check_normalizer(*normalizer));
  if (const auto steps = root.find("pre_tokenizer")) {
    EMBER_TRY(parse_pre_tokenizer(*steps, file.pre_tokenizer));
  }
  EMBER_TRY(check_post_processor_and_decoder(root));
  EMBER_ASSIGN(const JsonView model, root.member("model"));
  EMBER_TRY(parse_model(model, file.model));
  EMBER_TRY(parse_added_tokens(root, file));
  return file;
}

}  // namespace ember
