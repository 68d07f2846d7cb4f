// GLM-4.7's template, which GLM-4.7-Flash shares.
#include <string>

#include "engine/text/known_templates.h"
#include "engine/text/python_json.h"
#include "engine/text/unicode_forms.h"
#include "engine/text/utf8.h"

namespace ember {
namespace {

constexpr std::string_view kBegin = "[gMASK]<sop>";
constexpr std::string_view kThink = "<think>";
constexpr std::string_view kEndThink = "</think>";
constexpr std::string_view kToolsBegin =
    "<|system|>\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n";
constexpr std::string_view kToolsEnd =
    "</tools>\n\nFor each function call, output the function name and arguments within the "
    "following XML format:\n<tool_call>{function-name}<arg_key>{arg-key-1}</arg_key>"
    "<arg_value>{arg-value-1}</arg_value><arg_key>{arg-key-2}</arg_key>"
    "<arg_value>{arg-value-2}</arg_value>...</tool_call>";

// White space as Python's str.strip() knows it.
bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

std::string_view stripped(std::string_view text) {
  while (!text.empty() && is_python_space(first_code_point(text))) {
    text.remove_prefix(utf8_step(text).length);
  }
  while (!text.empty()) {
    const size_t last = last_character(text);
    if (!is_python_space(first_code_point(text.substr(last)))) break;
    text = text.substr(0, last);
  }
  return text;
}

// A message's content taken apart: reasoning may stand in it, between think marks.
struct Answer {
  std::string_view reasoning;
  std::string_view content;
};

Answer answer_of(const Message& message) {
  const std::string_view content = message.has_content ? std::string_view(message.content) : "";
  if (message.reasoning) return {*message.reasoning, content};
  const size_t first_end = content.find(kEndThink);
  if (first_end == std::string_view::npos) return {"", content};
  std::string_view reasoning = content.substr(0, first_end);
  reasoning = reasoning.substr(0, reasoning.find_last_not_of('\n') + 1);
  if (const size_t begin = reasoning.rfind(kThink); begin != std::string_view::npos) {
    reasoning.remove_prefix(begin + kThink.size());
  }
  reasoning.remove_prefix(std::min(reasoning.find_first_not_of('\n'), reasoning.size()));
  std::string_view rest = content.substr(content.rfind(kEndThink) + kEndThink.size());
  rest.remove_prefix(std::min(rest.find_first_not_of('\n'), rest.size()));
  return {reasoning, rest};
}

class Glm47 final : public ChatTemplate {
 public:
  explicit Glm47(const TemplateSettings& settings) : thinking_(settings.thinking.value_or(true)) {}
  std::string_view name() const override { return "glm-4.7"; }

  Result<RenderedPrompt> render(const ChatInput& input, bool generation_prompt) const override {
    EMBER_TRY(check_input(
        {.name = name(), .tool_definitions = true, .tool_messages = true, .null_content = true},
        input));
    RenderedPrompt prompt{std::string(kBegin), {}};
    EMBER_TRY(append_tools(input.tools, prompt.text));
    size_t after_last_user = 0;
    for (size_t i = 0; i < input.messages.size(); ++i) {
      if (input.messages[i].role == "user") after_last_user = i + 1;
    }
    for (size_t i = 0; i < input.messages.size(); ++i) {
      EMBER_TRY(append_message(input, i, i >= after_last_user, prompt));
    }
    const bool goes_on = !input.messages.empty() && input.messages.back().prefix;
    if (generation_prompt && !goes_on) prompt.text.append("<|assistant|>").append(mode());
    return prompt;
  }

  std::string opening(std::string_view system) const override {
    std::string out(kBegin);
    if (!system.empty()) out.append("<|system|>").append(system);
    return out;
  }
  std::string user_turn(std::string_view user) const override {
    return std::string("<|user|>").append(user).append("<|assistant|>").append(mode());
  }
  std::string answer_end() const override { return {}; }  // the next turn's mark is enough

 private:
  std::string_view mode() const { return thinking_ ? kThink : kEndThink; }

  static Status append_tools(const std::string& tools, std::string& out) {
    if (tools.empty()) return {};
    EMBER_ASSIGN(const OrderedJson list, parse_ordered_json(tools, "tools"));
    out += kToolsBegin;
    for (const auto& tool : list) out.append(python_json(tool)).append("\n");
    out += kToolsEnd;
    return {};
  }

  static Status append_message(const ChatInput& input, size_t index, bool keeps_reasoning,
                               RenderedPrompt& prompt) {
    const Message& message = input.messages[index];
    std::string& out = prompt.text;
    if (message.role == "user") {
      out.append("<|user|>").append(message.content);
    } else if (message.role == "system") {
      out.append("<|system|>").append(message.content);
    } else if (message.role == "tool") {
      const bool first = index == 0 || input.messages[index - 1].role != "tool";
      if (first) out += "<|observation|>";
      out.append("<tool_response>").append(message.content).append("</tool_response>");
    } else {
      return append_answer(input, index, keeps_reasoning, prompt);
    }
    return {};
  }

  static Status append_answer(const ChatInput& input, size_t index, bool keeps_reasoning,
                              RenderedPrompt& prompt) {
    const Message& message = input.messages[index];
    const Answer answer = answer_of(message);
    std::string& out = prompt.text;
    out += "<|assistant|>";
    if (keeps_reasoning && !answer.reasoning.empty()) {
      out.append(kThink).append(stripped(answer.reasoning));
    } else if (message.reasoning) {
      drop_reasoning(input, index, prompt);
    } else if (!answer.reasoning.empty()) {
      const auto begin = static_cast<size_t>(answer.reasoning.data() - message.content.data());
      prompt.dropped.push_back(
          {index, "content", begin, begin + answer.reasoning.size(), kDropsReasoning});
    }
    out.append(kEndThink).append(stripped(answer.content));
    for (size_t i = 0; i < message.tool_calls.size(); ++i) {
      const std::string place =
          "messages[" + std::to_string(index) + "].tool_calls[" + std::to_string(i) + "]";
      EMBER_TRY(append_call(message.tool_calls[i], place, out));
    }
    return {};
  }

  static Status append_call(const ToolCall& call, const std::string& place, std::string& out) {
    const std::string what = place + ".function.arguments";
    EMBER_ASSIGN(const OrderedJson arguments, parse_ordered_json(call.arguments, what));
    if (!arguments.is_object()) {
      return {ErrorCode::kInvalidArgument,
              what + ": found " + call.arguments + ", expected a JSON object"};
    }
    out.append("<tool_call>").append(call.name);
    for (const auto& [key, value] : arguments.items()) {
      out.append("<arg_key>").append(key).append("</arg_key><arg_value>");
      out += value.is_string() ? value.get<std::string>() : python_json(value);
      out += "</arg_value>";
    }
    out += "</tool_call>";
    return {};
  }

  bool thinking_;
};

}  // namespace

std::unique_ptr<ChatTemplate> make_glm_47(const TemplateSettings& settings) {
  return std::make_unique<Glm47>(settings);
}

}  // namespace ember
