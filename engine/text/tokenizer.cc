// Tokenizer: puts the parts together: added tokens, then pre-tokenizer and BPE in the gaps.
// Text must be UTF-8: the original only ever sees Unicode strings, so other bytes are an error.
#include "engine/text/tokenizer.h"

#include <filesystem>
#include <unordered_map>
#include <utility>

#include "engine/text/added_tokens.h"
#include "engine/text/bpe.h"
#include "engine/text/byte_level.h"
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
  std::string bytes;
  bool known = false;
  bool special = false;
};

class JsonTokenizer final : public Tokenizer {
 public:
  JsonTokenizer(TokenizerFile file, TokenizerConfig config, AddedTokens added,
                PreTokenizer pre_tokenizer);
  // Looks up the config's BOS. Errors: kInvalidArgument when it is not in the vocabulary.
  Status find_bos(const std::string& config_name);

  Result<std::vector<TokenId>> encode(std::string_view text, bool bos) override;
  Result<std::string> decode(TokenSpan ids, bool skip_special) const override;
  Result<std::string> token_bytes(TokenId id) const override;

  std::optional<TokenId> token_id(std::string_view added_token) const override;
  std::optional<TokenId> bos_id() const override { return bos_id_; }
  bool adds_bos() const override { return config_.adds_bos; }
  const std::string& chat_template() const override { return config_.chat_template; }
  const std::string& bos_text() const override { return config_.bos_text; }
  const std::string& eos_text() const override { return config_.eos_text; }
  TokenId vocab_size() const override { return static_cast<TokenId>(texts_.size()); }

 private:
  void remember(TokenId id, const std::string& token, bool special);
  Result<const TokenText*> text_of(TokenId id) const;

  TokenizerConfig config_;
  AddedTokens added_;
  PreTokenizer pre_tokenizer_;
  std::vector<TokenText> texts_;  // by id
  std::unordered_map<std::string, TokenId, StringHash, std::equal_to<>> added_ids_;
  Bpe bpe_;
  std::optional<TokenId> bos_id_;
};

JsonTokenizer::JsonTokenizer(TokenizerFile file, TokenizerConfig config, AddedTokens added,
                             PreTokenizer pre_tokenizer)
    : config_(std::move(config)),
      added_(std::move(added)),
      pre_tokenizer_(std::move(pre_tokenizer)),
      bpe_(std::move(file.model)) {
  for (const auto& [token, id] : bpe_.vocabulary()) remember(id, token, false);
  for (const AddedToken& token : file.added_tokens) {
    remember(token.id, token.content, token.special);
    added_ids_.emplace(token.content, token.id);
  }
}

void JsonTokenizer::remember(TokenId id, const std::string& token, bool special) {
  const auto index = static_cast<size_t>(id);
  if (index >= texts_.size()) texts_.resize(index + 1);
  texts_[index] = {bytes_of_token(token), true, special};
}

Status JsonTokenizer::find_bos(const std::string& config_name) {
  if (config_.bos_text.empty()) {
    if (!config_.adds_bos) return {};
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
  std::vector<TokenId> ids;
  if (bos) {
    if (!bos_id_) {
      return Error{ErrorCode::kInvalidArgument,
                   "a BOS was asked for, but the tokenizer has none (bos_token in "
                   "tokenizer_config.json)"};
    }
    ids.push_back(*bos_id_);
  }
  EMBER_ASSIGN(const auto parts, added_.split(text));
  for (const AddedTokens::Part& part : parts) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    Pieces pieces(text.substr(part.begin, part.end - part.begin));
    EMBER_TRY(pre_tokenizer_.run(pieces));
    for (const Pieces::Range& range : pieces.ranges) bpe_.encode(pieces.view(range), ids);
  }
  return ids;
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
  for (const TokenId id : ids) {
    EMBER_ASSIGN(const TokenText* text, text_of(id));
    if (!(skip_special && text->special)) bytes += text->bytes;
  }
  return lossy_utf8(bytes);
}

Result<std::string> JsonTokenizer::token_bytes(TokenId id) const {
  EMBER_ASSIGN(const TokenText* text, text_of(id));
  return text->bytes;
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
  EMBER_ASSIGN(AddedTokens added, AddedTokens::build(file.added_tokens));
  EMBER_ASSIGN(PreTokenizer pre_tokenizer, PreTokenizer::build(file.pre_tokenizer));
  auto tokenizer = std::make_unique<JsonTokenizer>(std::move(file), std::move(config),
                                                   std::move(added), std::move(pre_tokenizer));
  EMBER_TRY(tokenizer->find_bos(config_name));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

}  // namespace ember
