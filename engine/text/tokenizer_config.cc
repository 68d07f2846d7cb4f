// Tokenizer config: the four keys, in the forms in which they are published.
#include "engine/text/tokenizer_config.h"

#include "engine/text/json_view.h"

namespace ember {
namespace {

Result<std::string> token_text(const JsonView& root, std::string_view key) {
  const std::optional<JsonView> view = root.find(key);
  if (!view) return std::string();
  if (view->value().is_object()) {
    EMBER_ASSIGN(const JsonView content, view->member("content"));
    return content.string();
  }
  return view->string();
}

Result<std::string> template_text(const JsonView& root) {
  const std::optional<JsonView> view = root.find("chat_template");
  if (!view) return std::string();
  if (!view->value().is_array()) return view->string();
  for (size_t i = 0; i < view->value().size(); ++i) {
    const JsonView entry = view->element(i);
    EMBER_ASSIGN(const JsonView name, entry.member("name"));
    if (name.value() != "default") continue;
    EMBER_ASSIGN(const JsonView text, entry.member("template"));
    return text.string();
  }
  return view->wrong("a template named \"default\" among them");
}

}  // namespace

Result<TokenizerConfig> parse_tokenizer_config(std::string_view json_text,
                                               const std::string& name) {
  EMBER_ASSIGN(const Json document, parse_json(json_text, name));
  const JsonView root(document, name);
  EMBER_TRY(root.expect_object());
  TokenizerConfig config;
  EMBER_ASSIGN(config.bos_text, token_text(root, "bos_token"));
  EMBER_ASSIGN(config.eos_text, token_text(root, "eos_token"));
  if (const std::optional<JsonView> adds = root.find("add_bos_token")) {
    EMBER_ASSIGN(config.adds_bos, adds->boolean());
  }
  EMBER_ASSIGN(config.chat_template, template_text(root));
  return config;
}

}  // namespace ember
