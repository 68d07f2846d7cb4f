// Prompt source: where a prompt comes from (words, a file, a chat request), and its tokens.
//
// Journey    flags -> [prompt_source] -> tokens -> generate, explain
// Invariant  the same source gives the same tokens to every command
// Threads    any
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "prefix_index/token.h"

namespace ember {

// At most one of the two is given.
struct SystemFlags {
  std::optional<std::string> text;
  std::optional<std::string> file;  // without the line ends at its end

  bool given() const { return text || file; }
};
// The system message, empty where none is given. Errors: those of reading the file, naming it.
Result<std::string> read_system(const SystemFlags& flags);

// Exactly one of the first three is given.
struct PromptFlags {
  std::optional<std::string> messages_file;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;
  bool chat = false;   // wraps raw text as a user's message
  SystemFlags system;  // before the raw text, which is a user's message then
};

struct PromptSource {
  ChatInput input;  // without messages: `raw` is the prompt
  std::string raw;
};

// Errors: those of reading the file, naming it; kInvalidArgument of the messages.
Result<PromptSource> read_prompt(const PromptFlags& flags);

struct PromptTokens {
  std::vector<TokenId> ids;
  std::vector<DroppedText> dropped;  // what the template leaves out
};

// Tokenizer::encode, wherever its tokenizer is.
using EncodeText = std::function<Result<std::vector<TokenId>>(std::string_view text, bool bos)>;

// Errors: those of the template and the tokenizer.
Result<PromptTokens> tokenize_prompt(const Tokenizer& tokenizer, const EncodeText& encode,
                                     const PromptSource& source, const std::string& template_name,
                                     std::optional<bool> thinking);
Result<PromptTokens> tokenize_prompt(Tokenizer& tokenizer, const PromptSource& source,
                                     const std::string& template_name,
                                     std::optional<bool> thinking);

}  // namespace ember
