// Kimi K2's templates: the first one, that of August 2025 with tool calls, and the thinking one.
#include <string>

#include "engine/text/known_templates.h"
#include "engine/text/python_json.h"

namespace ember {
namespace {

constexpr std::string_view kEnd = "<|im_end|>";
constexpr std::string_view kMiddle = "<|im_middle|>";
constexpr std::string_view kAnswer = "<|im_assistant|>assistant<|im_middle|>";

struct Variant {
  std::string_view name;
  std::string_view system;     // what is said where no system message comes first
  bool calls = false;          // renders tool calls, results by their call, and names
  bool compact_tools = false;  // tool definitions without spaces
  bool thinks = false;         // answers carry <think></think>
};

class KimiK2 final : public ChatTemplate {
 public:
  explicit KimiK2(const Variant& variant) : variant_(variant) {}
  std::string_view name() const override { return variant_.name; }

  Result<RenderedPrompt> render(const ChatInput& input, bool generation_prompt) const override {
    EMBER_TRY(check_input({.name = name(),
                           .tool_definitions = true,
                           .tool_messages = true,
                           .null_content = variant_.calls},
                          input));
    RenderedPrompt prompt;
    if (!input.tools.empty()) {
      EMBER_ASSIGN(const OrderedJson tools, parse_ordered_json(input.tools, "tools"));
      prompt.text.append("<|im_system|>tool_declare").append(kMiddle);
      prompt.text.append(python_json(tools, variant_.compact_tools)).append(kEnd);
    }
    const bool has_system = !input.messages.empty() && input.messages.front().role == "system";
    if (!has_system) append_turn(prompt.text, "<|im_system|>system", variant_.system);
    const size_t history = end_of_history(input);
    for (size_t i = 0; i < input.messages.size(); ++i) {
      append_message(input, i, i < history, prompt);
      if (!input.messages[i].prefix) prompt.text += kEnd;
    }
    const bool goes_on = !input.messages.empty() && input.messages.back().prefix;
    if (generation_prompt && !goes_on) prompt.text += kAnswer;
    return prompt;
  }

  std::string opening(std::string_view system) const override {
    std::string out;
    append_turn(out, "<|im_system|>system", system.empty() ? variant_.system : system);
    return out;
  }
  std::string user_turn(std::string_view user) const override {
    std::string out;
    append_turn(out, "<|im_user|>user", user);
    return out.append(kAnswer);
  }
  std::string answer_end() const override { return std::string(kEnd); }

 private:
  static void append_turn(std::string& out, std::string_view head, std::string_view body) {
    out.append(head).append(kMiddle).append(body).append(kEnd);
  }

  // Behind the last answer that calls no tools reasoning is kept.
  static size_t end_of_history(const ChatInput& input) {
    for (size_t i = input.messages.size(); i > 0; --i) {
      const Message& message = input.messages[i - 1];
      if (message.role == "assistant" && message.tool_calls.empty()) return i;
    }
    return 0;
  }

  void append_message(const ChatInput& input, size_t index, bool history,
                      RenderedPrompt& prompt) const {
    const Message& message = input.messages[index];
    std::string& out = prompt.text;
    const bool named = variant_.calls && !message.name.empty();
    out += message.role == "user"        ? "<|im_user|>"
           : message.role == "assistant" ? "<|im_assistant|>"
                                         : "<|im_system|>";
    out.append(named ? message.name : message.role).append(kMiddle);
    if (variant_.thinks && message.role == "assistant") {
      if (history) drop_reasoning(input, index, prompt);
      out.append("<think>").append(history ? "" : message.reasoning.value_or(""));
      out.append("</think>");
    } else {
      drop_reasoning(input, index, prompt);
    }
    if (variant_.calls && message.role == "tool") {
      out.append("## Return of ").append(message.tool_call_id).append("\n");
    }
    if (message.has_content) out += message.content;
    if (variant_.calls) {
      append_calls(message, out);
    } else if (!message.tool_calls.empty()) {
      prompt.dropped.push_back({index, "tool_calls", 0, message.tool_calls.size(), kKnowsNoCalls});
    }
  }

  static void append_calls(const Message& message, std::string& out) {
    if (message.tool_calls.empty()) return;
    out += "<|tool_calls_section_begin|>";
    for (const ToolCall& call : message.tool_calls) {
      out.append("<|tool_call_begin|>").append(call.id).append("<|tool_call_argument_begin|>");
      out.append(call.arguments).append("<|tool_call_end|>");
    }
    out += "<|tool_calls_section_end|>";
  }

  Variant variant_;
};

constexpr std::string_view kKimi = "You are Kimi, an AI assistant created by Moonshot AI.";

}  // namespace

std::unique_ptr<ChatTemplate> make_kimi_k2(const TemplateSettings&) {
  return std::make_unique<KimiK2>(
      Variant{.name = "kimi-k2", .system = "You are a helpful assistant"});
}
std::unique_ptr<ChatTemplate> make_kimi_k2_tools(const TemplateSettings&) {
  return std::make_unique<KimiK2>(
      Variant{.name = "kimi-k2-tools", .system = kKimi, .calls = true, .compact_tools = true});
}
std::unique_ptr<ChatTemplate> make_kimi_k2_thinking(const TemplateSettings&) {
  return std::make_unique<KimiK2>(
      Variant{.name = "kimi-k2-thinking", .system = kKimi, .calls = true, .thinks = true});
}

}  // namespace ember
