// Chat template: how messages become one prompt text; known templates, chosen by comparison.
//
// Journey    messages -> [chat_template] -> text -> tokenizer
// Invariant  a chat_template that equals none of the known ones is an error unless a template is
//            named; nothing of a template is ever executed
// Source     DeepSeek-V3's tokenizer_config.json
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/text/tokenizer.h"

namespace ember {

struct Message {
  std::string role;     // "system", "user", "assistant"
  std::string content;
};

class ChatTemplate {
 public:
  // `name` ("deepseek-v3"), or empty: found by comparing the tokenizer's chat_template.
  // Errors: kUnsupported naming the known templates.
  static Result<std::unique_ptr<ChatTemplate>> choose(const Tokenizer& tokenizer,
                                                      std::string_view name);
  virtual ~ChatTemplate() = default;
  virtual std::string_view name() const = 0;

  // The whole prompt, BOS text included; ends ready for the assistant to speak when
  // `generation_prompt`. Errors: kInvalidArgument naming the message and role it cannot render.
  virtual Result<std::string> render(const std::vector<Message>& messages,
                                     bool generation_prompt) const = 0;
  // The pieces that a running chat adds: render(system, turns...) equals opening + one turn each.
  virtual std::string opening(std::string_view system) const = 0;  // BOS and system text
  virtual std::string user_turn(std::string_view user) const = 0;  // up to where the answer begins
  virtual std::string answer_end() const = 0;                      // after an answer
};

// Reads a messages file: an array of {"role", "content"}, or an object with "messages".
// Errors: kInvalidArgument naming the place and what was expected.
Result<std::vector<Message>> parse_messages(std::string_view json_text);

}  // namespace ember
