// Chat template: how messages become one prompt text; known templates, chosen by comparison.
//
// Journey    messages -> [chat_template] -> text -> tokenizer
// Invariant  a chat_template that equals none of the known ones (their layout aside) is an error
//            unless a template is named; nothing of a template is ever executed; what a template
//            leaves out of the prompt is told
// Source     the chat_template of DeepSeek-V2, V3, R1, V3.1, Kimi-K2 and GLM-4.7
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/text/tokenizer.h"

namespace ember {

struct ToolCall {
  std::string id = {};
  std::string type = "function";
  std::string name = {};
  std::string arguments = {};  // JSON, as the model wrote it
};

struct Message {
  std::string role = {};  // "system", "user", "assistant", "tool"
  std::string content = {};
  bool has_content = true;                    // false: null, beside tool calls
  std::optional<std::string> reasoning = {};  // reasoning_content
  std::vector<ToolCall> tool_calls = {};
  std::string name = {};  // of a tool, beside its result
  std::string tool_call_id = {};
  bool prefix = false;  // the last one, of the assistant: it goes on with this
};

// What stands in a request and decides its prompt.
struct ChatInput {
  std::vector<Message> messages;
  std::string tools;  // a JSON array of tool definitions, or empty
};

// A part of the input that the prompt does not hold.
struct DroppedText {
  size_t message;
  std::string_view field;  // "content", "reasoning_content" or "tool_calls"
  size_t begin;            // bytes of the field; of tool_calls their number
  size_t end;
  std::string_view why;
};

struct RenderedPrompt {
  std::string text;
  std::vector<DroppedText> dropped;
};

class ChatTemplate {
 public:
  // `name` ("deepseek-v3"), or empty: found by comparing the tokenizer's chat_template.
  // `thinking`: whether answers begin with reasoning, where the template leaves that open; without
  // a value as the template has it. Errors: kUnsupported naming the known templates.
  static Result<std::unique_ptr<ChatTemplate>> choose(const Tokenizer& tokenizer,
                                                      std::string_view name,
                                                      std::optional<bool> thinking = {});
  virtual ~ChatTemplate() = default;
  virtual std::string_view name() const = 0;

  // The whole prompt, BOS text included; ends ready for the assistant to speak when
  // `generation_prompt`, and within its words when the last message is a prefix.
  // Errors: kInvalidArgument naming the message and what of it cannot be rendered.
  virtual Result<RenderedPrompt> render(const ChatInput& input, bool generation_prompt) const = 0;
  // The pieces that a running chat adds: render(system, turns...) equals opening + one turn each,
  // but for reasoning: a running chat keeps what was sampled.
  virtual std::string opening(std::string_view system) const = 0;  // BOS and system text
  virtual std::string user_turn(std::string_view user) const = 0;  // up to where the answer begins
  virtual std::string answer_end() const = 0;                      // after an answer
};

// Reads a messages file: an array of messages, or an object with "messages" and perhaps "tools".
// Errors: kInvalidArgument naming the place and what was expected.
Result<ChatInput> parse_messages(std::string_view json_text);

}  // namespace ember
