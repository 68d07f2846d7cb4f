// Tokenizer file: reads a tokenizer.json component by component and refuses what it does not know.
#include "engine/text/tokenizer_file.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "engine/text/json_view.h"
#include "engine/text/tokenizer_components.h"

namespace ember {
namespace {

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
    // The second half of a pair stands behind another: it carries the prefix, which goes.
    const std::string_view tail =
        std::string_view(pair.second)
            .substr(std::min(pair.second.size(), out.continuing_prefix.size()));
    const std::string joined = pair.first + std::string(tail);
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

// The options that change which tokens come out.
Status parse_options(const JsonView& view, BpeModel& model) {
  if (const std::optional<JsonView> dropout = view.find("dropout")) {
    if (dropout->value() != 0) return dropout->unsupported("dropout = " + dropout->value().dump());
  }
  const std::pair<const char*, bool*> flags[] = {{"ignore_merges", &model.ignore_merges},
                                                 {"byte_fallback", &model.byte_fallback},
                                                 {"fuse_unk", &model.fuse_unknown}};
  for (const auto& [key, flag] : flags) {
    if (const std::optional<JsonView> member = view.find(key)) {
      EMBER_ASSIGN(*flag, member->boolean());
    }
  }
  const std::pair<const char*, std::string*> texts[] = {
      {"continuing_subword_prefix", &model.continuing_prefix},
      {"end_of_word_suffix", &model.end_suffix}};
  for (const auto& [key, text] : texts) {
    if (const std::optional<JsonView> member = view.find(key)) {
      EMBER_ASSIGN(*text, member->string());
    }
  }
  return {};
}

Status parse_unknown(const JsonView& view, BpeModel& model) {
  const std::optional<JsonView> unknown = view.find("unk_token");
  if (!unknown) return {};
  EMBER_ASSIGN(const std::string token, unknown->string());
  const auto place = model.vocabulary.find(token);
  if (place == model.vocabulary.end()) return unknown->wrong("a token of the vocabulary");
  model.unknown = place->second;
  return {};
}

Status parse_model(const JsonView& view, BpeModel& model) {
  EMBER_TRY(view.expect_object());
  // Old files name no type; what has merges is BPE.
  if (view.value().contains("type") || !view.value().contains("merges")) {
    EMBER_ASSIGN(const JsonView type, view.member("type"));
    EMBER_ASSIGN(const std::string name, type.string());
    if (name != "BPE") return view.unsupported("the model " + name);
  }
  EMBER_TRY(view.expect_keys({"type", "dropout", "unk_token", "continuing_subword_prefix",
                              "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
                              "vocab", "merges"}));
  EMBER_TRY(parse_options(view, model));
  EMBER_TRY(parse_vocabulary(view, model.vocabulary));
  EMBER_TRY(parse_unknown(view, model));
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
  if (const auto steps = root.find("normalizer")) {
    EMBER_TRY(parse_normalizer(*steps, file.normalizer));
  }
  if (const auto steps = root.find("pre_tokenizer")) {
    EMBER_TRY(parse_pre_tokenizer(*steps, file.pre_tokenizer));
  }
  if (const auto post = root.find("post_processor")) {
    EMBER_TRY(parse_post_processor(*post, file.frame));
  }
  EMBER_ASSIGN(const JsonView decoder, root.member("decoder"));
  if (decoder.is_null()) return decoder.wrong("a decoder");
  EMBER_TRY(parse_decoder(decoder, file.decoder));
  EMBER_ASSIGN(const JsonView model, root.member("model"));
  EMBER_TRY(parse_model(model, file.model));
  EMBER_TRY(parse_added_tokens(root, file));
  return file;
}

}  // namespace ember
