// Reading prompts and making tokens of them.
#include "tools/commands/prompt_source.h"

#include <memory>
#include <utility>

#include "engine/text/text_file.h"

namespace ember {

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
  if (flags.chat) source.input.messages = {Message{"user", std::move(source.raw)}};
  return source;
}

Result<PromptTokens> tokenize_prompt(Tokenizer& tokenizer, const PromptSource& source,
                                     const std::string& template_name,
                                     std::optional<bool> thinking) {
  PromptTokens tokens;
  if (source.input.messages.empty()) {
    EMBER_ASSIGN(tokens.ids, tokenizer.encode(source.raw, tokenizer.adds_bos()));
    return tokens;
  }
  EMBER_ASSIGN(const auto chat_template, ChatTemplate::choose(tokenizer, template_name, thinking));
  EMBER_ASSIGN(RenderedPrompt prompt, chat_template->render(source.input, true));
  EMBER_ASSIGN(tokens.ids, tokenizer.encode(prompt.text));
  tokens.dropped = std::move(prompt.dropped);
  return tokens;
}

}  // namespace ember
