// Tokenizer: puts the parts together: added tokens, then pre-tokenizer and BPE in the gaps.
// Text must be UTF-8: the original only ever sees Unicode strings, so other bytes are an error.
#include "engine/text/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include "engine/text/added_tokens.h"
#include "engine/text/bpe.h"
#include "engine/text/byte_level.h"
#include "engine/text/decoder.h"
#include "engine/text/normalizer.h"
#include "engine/text/pre_tokenizer.h"
#include "engine/text/text_file.h"
#include "engine/text/tokenizer_config.h"
#include "engine/text/tokenizer_file.h"
#include "engine/text/utf8.h"

namespace ember {
namespace {

// Oniguruma counts in int; byte characters take two bytes.
constexpr size_t kMaxTextBytes = size_t{512} << 20;

struct TokenText {
  std::string text;  // for a byte-level vocabulary the bytes, else as the file has it
  bool known = false;
  bool special = false;
};

// The parts that text and tokens go through, made of a file's steps.
struct Parts {
  Normalizer normalizer;
  AddedTokens added;
  PreTokenizer pre_tokenizer;
};

class JsonTokenizer final : public Tokenizer {
 public:
  JsonTokenizer(TokenizerFile file, TokenizerConfig config, Parts parts);
  // Errors: kUnsupported when an expression gives up.
  Status remember_added(const std::vector<AddedToken>& tokens);
  // Looks up the config's BOS. Errors: kInvalidArgument when it is not in the vocabulary.
  Status find_bos(const std::string& config_name);

  Result<std::vector<TokenId>> encode(std::string_view text, bool bos) override;
  Result<std::string> decode(TokenSpan ids, bool skip_special) const override;
  Result<std::string> token_bytes(TokenId id) const override;
  std::unique_ptr<TextStream> stream(bool skip_special) const override;

  std::optional<TokenId> token_id(std::string_view added_token) const override;
  std::optional<TokenId> bos_id() const override { return bos_id_; }
  bool adds_bos() const override {
    return config_.adds_bos.value_or(!frame_.before.empty() || !frame_.after.empty());
  }
  const std::string& chat_template() const override { return config_.chat_template; }
  const std::string& bos_text() const override { return config_.bos_text; }
  const std::string& eos_text() const override { return config_.eos_text; }
  TokenId vocab_size() const override { return static_cast<TokenId>(texts_.size()); }

  Result<const TokenText*> text_of(TokenId id) const;

 private:
  class Stream;
  void remember(TokenId id, const std::string& token, bool special);
  Result<std::vector<TokenId>> begun(bool bos) const;
  // Appends the ids of what stands between added tokens. `from_first`: see NormalizedText.
  Status encode_gap(std::string_view gap, size_t from_first, std::vector<TokenId>& ids);
  Status encode_text(std::string_view text, size_t from_first, std::vector<TokenId>& ids);

  TokenizerConfig config_;
  Parts parts_;
  SpecialFrame frame_;
  std::vector<DecoderStep> decoder_;  // empty: byte level and nothing else
  std::vector<TokenText> texts_;      // by id
  std::unordered_map<std::string, TokenId, StringHash, std::equal_to<>> added_ids_;
  Bpe bpe_;
  std::optional<TokenId> bos_id_;
};

// A byte-level text needs no stages: its tokens' bytes are known beforehand.
std::vector<DecoderStep> stages_of(std::vector<DecoderStep> steps) {
  const bool plain = steps.size() == 1 && steps.front().kind == DecoderStep::Kind::kByteLevel;
  if (plain) steps.clear();
  return steps;
}

class JsonTokenizer::Stream final : public TextStream {
 public:
  Stream(const JsonTokenizer& tokenizer, bool skip_special)
      : tokenizer_(tokenizer), skip_special_(skip_special), run_(tokenizer.decoder_) {}

  std::string push(TokenId id) override {
    // An id without text (a model's table may exceed the vocabulary) is shown, not hidden.
    static const TokenText kForeign{"\xEF\xBF\xBD", true, false};
    const auto known = tokenizer_.text_of(id);
    const TokenText& token = known.ok() ? **known : kForeign;
    std::string out;
    if (skip_special_ && token.special) return out;
    if (tokenizer_.decoder_.empty()) {
      pending_ += token.text;
      take_complete_utf8(pending_, out);
    } else {
      run_.push(token.text, out);
    }
    return out;
  }
  std::string finish() override {
    std::string out = lossy_utf8(pending_);
    pending_.clear();
    run_.finish(out);
    return out;
  }

 private:
  const JsonTokenizer& tokenizer_;
  bool skip_special_;
  DecoderRun run_;
  std::string pending_;
};

JsonTokenizer::JsonTokenizer(TokenizerFile file, TokenizerConfig config, Parts parts)
    : config_(std::move(config)),
      parts_(std::move(parts)),
      frame_(std::move(file.frame)),
      decoder_(stages_of(std::move(file.decoder))),
      bpe_(std::move(file.model)) {
  for (const auto& [token, id] : bpe_.vocabulary()) remember(id, token, false);
}

Status JsonTokenizer::remember_added(const std::vector<AddedToken>& tokens) {
  for (const AddedToken& token : tokens) {
    EMBER_ASSIGN(const std::string written, AddedTokens::written_form(token, parts_.normalizer));
    // As in the original, a token that the normalizer rewrites is no longer known as special.
    remember(token.id, written, token.special && written == token.content);
    added_ids_.emplace(token.content, token.id);
  }
  return {};
}

void JsonTokenizer::remember(TokenId id, const std::string& token, bool special) {
  const auto index = static_cast<size_t>(id);
  if (index >= texts_.size()) texts_.resize(index + 1);
  texts_[index] = {decoder_.empty() ? bytes_of_token(token) : token, true, special};
}

Status JsonTokenizer::find_bos(const std::string& config_name) {
  if (config_.bos_text.empty()) {
    if (!config_.adds_bos.value_or(false)) return {};
    return Error{ErrorCode::kInvalidArgument,
                 config_name + ": add_bos_token is true, but there is no bos_token"};
  }
  bos_id_ = token_id(config_.bos_text);
  if (!bos_id_) {
    const auto plain = bpe_.vocabulary().find(config_.bos_text);
    if (plain != bpe_.vocabulary().end()) bos_id_ = plain->second;
  }
  if (bos_id_) return {};
  return Error{ErrorCode::kInvalidArgument, config_name + ": bos_token: found \"" +
                                                config_.bos_text +
                                                "\", expected a token of the vocabulary"};
}

Result<std::vector<TokenId>> JsonTokenizer::encode(std::string_view text, bool bos) {
  if (text.size() > kMaxTextBytes) {
    return Error{ErrorCode::kInvalidArgument, "text of " + std::to_string(text.size()) +
                                                  " bytes; the tokenizer takes at most " +
                                                  std::to_string(kMaxTextBytes)};
  }
  if (const size_t bad = find_ill_formed(text); bad != std::string_view::npos) {
    return Error{ErrorCode::kInvalidArgument,
                 "text is not UTF-8: no character begins at byte " + std::to_string(bad)};
  }
  EMBER_ASSIGN(std::vector<TokenId> ids, begun(bos));
  EMBER_ASSIGN(const auto parts, parts_.added.split(text));
  for (const AddedTokens::Part& part : parts) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    const size_t from_first = part.begin == 0 ? utf8_step(text).length : 0;
    EMBER_TRY(encode_gap(text.substr(part.begin, part.end - part.begin), from_first, ids));
  }
  if (bos) ids.insert(ids.end(), frame_.after.begin(), frame_.after.end());
  return ids;
}

Result<std::vector<TokenId>> JsonTokenizer::begun(bool bos) const {
  if (!bos) return std::vector<TokenId>();
  const bool framed = !frame_.before.empty() || !frame_.after.empty();
  if (!framed && !bos_id_) {
    return Error{ErrorCode::kInvalidArgument,
                 "a BOS was asked for, but the tokenizer has none (bos_token in "
                 "tokenizer_config.json)"};
  }
  std::vector<TokenId> ids = frame_.before;
  const bool has_bos = !ids.empty() && ids.front() == bos_id_;
  const bool wants_bos = bos_id_ && (!framed || config_.adds_bos.value_or(false));
  if (wants_bos && !has_bos) ids.insert(ids.begin(), *bos_id_);
  return ids;
}

Status JsonTokenizer::encode_gap(std::string_view gap, size_t from_first,
                                 std::vector<TokenId>& ids) {
  NormalizedText normalized;
  std::string_view text = gap;
  if (!parts_.normalizer.empty()) {
    normalized = {std::string(gap), from_first};
    EMBER_TRY(parts_.normalizer.run(normalized));
    text = normalized.text;
    from_first = normalized.from_first;
  }
  EMBER_ASSIGN(const auto parts, parts_.added.split_normalized(text));
  for (const AddedTokens::Part& part : parts) {
    if (part.id) {
      ids.push_back(*part.id);
    } else {
      const size_t own = std::min(from_first, part.end) - std::min(from_first, part.begin);
      EMBER_TRY(encode_text(text.substr(part.begin, part.end - part.begin), own, ids));
    }
  }
  return {};
}

Status JsonTokenizer::encode_text(std::string_view text, size_t from_first,
                                  std::vector<TokenId>& ids) {
  Pieces pieces(text, from_first);
  EMBER_TRY(parts_.pre_tokenizer.run(pieces));
  for (const Pieces::Range& range : pieces.ranges) bpe_.encode(pieces.view(range), ids);
  return {};
}

Result<const TokenText*> JsonTokenizer::text_of(TokenId id) const {
  const bool inside = id >= 0 && static_cast<size_t>(id) < texts_.size();
  if (inside && texts_[static_cast<size_t>(id)].known) return &texts_[static_cast<size_t>(id)];
  return Error{
      ErrorCode::kInvalidArgument,
      "token id " + std::to_string(id) +
          (inside ? " is not in use"
                  : " is outside the vocabulary, which ends at " + std::to_string(texts_.size()))};
}

Result<std::string> JsonTokenizer::decode(TokenSpan ids, bool skip_special) const {
  std::string bytes;
  DecoderRun run(decoder_);
  for (const TokenId id : ids) {
    EMBER_ASSIGN(const TokenText* token, text_of(id));
    if (skip_special && token->special) continue;
    if (decoder_.empty()) {
      bytes += token->text;
    } else {
      run.push(token->text, bytes);
    }
  }
  run.finish(bytes);
  return decoder_.empty() ? lossy_utf8(bytes) : bytes;
}

Result<std::string> JsonTokenizer::token_bytes(TokenId id) const {
  EMBER_ASSIGN(const TokenText* token, text_of(id));
  return decoded_bytes(decoder_, token->text);
}

std::unique_ptr<TextStream> JsonTokenizer::stream(bool skip_special) const {
  return std::make_unique<Stream>(*this, skip_special);
}

std::optional<TokenId> JsonTokenizer::token_id(std::string_view added_token) const {
  const auto place = added_ids_.find(added_token);
  if (place == added_ids_.end()) return std::nullopt;
  return place->second;
}

// The tokenizer.json that `path` means, and the folder of its companions.
struct Place {
  std::string file;
  std::filesystem::path folder;
};

Result<Place> find_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return Place{path, fs::path(path).parent_path()};
  for (const char* name : {"tokenizer.json", "tokenizer.json.gz"}) {
    const fs::path file = fs::path(path) / name;
    if (fs::exists(file, ignored)) return Place{file.string(), path};
  }
  return Error{ErrorCode::kIo, path + ": found no tokenizer.json and no tokenizer.json.gz in it"};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const std::string& path) {
  EMBER_ASSIGN(const Place place, find_file(path));
  EMBER_ASSIGN(const std::string json_text, read_text_file(place.file));
  EMBER_ASSIGN(TokenizerFile file, parse_tokenizer_file(json_text, place.file));
  TokenizerConfig config;
  const std::string config_name = (place.folder / "tokenizer_config.json").string();
  std::error_code ignored;
  if (std::filesystem::exists(config_name, ignored)) {
    EMBER_ASSIGN(const std::string config_text, read_text_file(config_name));
    EMBER_ASSIGN(config, parse_tokenizer_config(config_text, config_name));
  }
  EMBER_ASSIGN(Normalizer normalizer, Normalizer::build(file.normalizer));
  EMBER_ASSIGN(AddedTokens added, AddedTokens::build(file.added_tokens, normalizer));
  EMBER_ASSIGN(PreTokenizer pre_tokenizer, PreTokenizer::build(file.pre_tokenizer));
  const std::vector<AddedToken> added_tokens = file.added_tokens;
  auto tokenizer = std::make_unique<JsonTokenizer>(
      std::move(file), std::move(config),
      Parts{std::move(normalizer), std::move(added), std::move(pre_tokenizer)});
  EMBER_TRY(tokenizer->remember_added(added_tokens));
  EMBER_TRY(tokenizer->find_bos(config_name));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

}  // namespace ember
