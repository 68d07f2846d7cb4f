// Reading prompts and making tokens of them.
#include "tools/commands/prompt_source.h"

#include <memory>
#include <utility>

#include "engine/text/text_file.h"

namespace ember {

Result<std::string> read_system(const SystemFlags& flags) {
  if (flags.text) return *flags.text;
  if (!flags.file) return std::string();
  EMBER_ASSIGN(std::string text, read_text_file(*flags.file));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

Result<PromptSource> read_prompt(const PromptFlags& flags) {
  PromptSource source;
  if (flags.messages_file) {
    EMBER_ASSIGN(const std::string json, read_text_file(*flags.messages_file));
    Result<ChatInput> input = parse_messages(json);
    if (!input) {
      return Error{input.error().code, *flags.messages_file + ": " + input.error().message};
    }
    source.input = std::move(input).value();
    return source;
  }
  if (flags.prompt) {
    source.raw = *flags.prompt;
  } else {
    EMBER_ASSIGN(source.raw, read_text_file(*flags.prompt_file));
  }
  if (!flags.chat && !flags.system.given()) return source;
  EMBER_ASSIGN(std::string system, read_system(flags.system));
  if (flags.system.given()) source.input.messages.push_back(Message{"system", std::move(system)});
  source.input.messages.push_back(Message{"user", std::move(source.raw)});
  return source;
}

Result<PromptTokens> tokenize_prompt(const Tokenizer& tokenizer, const EncodeText& encode,
                                     const PromptSource& source, const std::string& template_name,
                                     std::optional<bool> thinking) {
  PromptTokens tokens;
  if (source.input.messages.empty()) {
    EMBER_ASSIGN(tokens.ids, encode(source.raw, tokenizer.adds_bos()));
    return tokens;
  }
  EMBER_ASSIGN(const auto chat_template, ChatTemplate::choose(tokenizer, template_name, thinking));
  EMBER_ASSIGN(RenderedPrompt prompt, chat_template->render(source.input, true));
  EMBER_ASSIGN(tokens.ids, encode(prompt.text, false));
  tokens.dropped = std::move(prompt.dropped);
  return tokens;
}

Result<PromptTokens> tokenize_prompt(Tokenizer& tokenizer, const PromptSource& source,
                                     const std::string& template_name,
                                     std::optional<bool> thinking) {
  const EncodeText encode = [&tokenizer](std::string_view text, bool bos) {
    return tokenizer.encode(text, bos);
  };
  return tokenize_prompt(tokenizer, encode, source, template_name, thinking);
}

}  // namespace ember
