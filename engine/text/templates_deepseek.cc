// DeepSeek's templates: V2, V3, R1 and V3.1.
#include <string>
#include <utility>

#include "engine/text/known_templates.h"

namespace ember {
namespace {

constexpr std::string_view kUser = "<｜User｜>";
constexpr std::string_view kAssistant = "<｜Assistant｜>";
constexpr std::string_view kEnd = "<｜end▁of▁sentence｜>";
constexpr std::string_view kThink = "<think>";
constexpr std::string_view kEndThink = "</think>";
constexpr std::string_view kCallsBegin = "<｜tool▁calls▁begin｜>";
constexpr std::string_view kCallsEnd = "<｜tool▁calls▁end｜>";
constexpr std::string_view kCallBegin = "<｜tool▁call▁begin｜>";
constexpr std::string_view kCallEnd = "<｜tool▁call▁end｜>";
constexpr std::string_view kOutputsBegin = "<｜tool▁outputs▁begin｜>";
constexpr std::string_view kOutputsEnd = "<｜tool▁outputs▁end｜>";
constexpr std::string_view kOutputBegin = "<｜tool▁output▁begin｜>";
constexpr std::string_view kOutputEnd = "<｜tool▁output▁end｜>";
constexpr std::string_view kSeparator = "<｜tool▁sep｜>";

// All system messages go to the front, wherever they stand.
std::string systems_of(const ChatInput& input) {
  std::string system;
  bool first = true;
  for (const Message& message : input.messages) {
    if (message.role != "system") continue;
    if (!std::exchange(first, false)) system += "\n\n";
    system += message.content;
  }
  return system;
}

// An answer, and its end unless it is to be gone on with.
void append_answer(std::string& out, std::string_view content, const Message& message) {
  out += content;
  if (!message.prefix) out += kEnd;
}

// What stands behind the `end_of_reasoning` bytes of reasoning in a message's content.
std::string_view answer_of(const ChatInput& input, size_t index, size_t end_of_reasoning,
                           RenderedPrompt& prompt) {
  if (end_of_reasoning > 0) {
    prompt.dropped.push_back({index, "content", 0, end_of_reasoning, kDropsReasoning});
  }
  return std::string_view(input.messages[index].content).substr(end_of_reasoning);
}

class DeepSeekV2 final : public ChatTemplate {
 public:
  explicit DeepSeekV2(TemplateSettings settings) : settings_(std::move(settings)) {}
  std::string_view name() const override { return "deepseek-v2"; }

  Result<RenderedPrompt> render(const ChatInput& input, bool generation_prompt) const override {
    EMBER_TRY(check_input({.name = name()}, input));
    RenderedPrompt prompt{settings_.bos, {}};
    for (size_t i = 0; i < input.messages.size(); ++i) {
      const Message& message = input.messages[i];
      drop_reasoning(input, i, prompt);
      if (message.role == "user") {
        prompt.text += "User: " + message.content + "\n\n";
      } else if (message.role == "assistant") {
        prompt.text += "Assistant: " + message.content;
        if (message.prefix) return prompt;
        prompt.text += settings_.eos;
      } else {
        prompt.text += message.content + "\n\n";
      }
    }
    if (generation_prompt) prompt.text += "Assistant:";
    return prompt;
  }

  std::string opening(std::string_view system) const override {
    return settings_.bos + (system.empty() ? "" : std::string(system) + "\n\n");
  }
  std::string user_turn(std::string_view user) const override {
    return "User: " + std::string(user) + "\n\nAssistant:";
  }
  std::string answer_end() const override { return settings_.eos; }

 private:
  TemplateSettings settings_;
};

// V3's, and R1's, which differs in what answers keep and how they begin.
class DeepSeekV3 final : public ChatTemplate {
 public:
  struct Variant {
    std::string_view name;
    bool drops_reasoning = false;
    std::string_view answer_begin = {};
  };
  DeepSeekV3(std::string bos, Variant variant) : bos_(std::move(bos)), variant_(variant) {}
  std::string_view name() const override { return variant_.name; }

  Result<RenderedPrompt> render(const ChatInput& input, bool generation_prompt) const override {
    EMBER_TRY(check_input({.name = name(), .tool_messages = true, .null_content = true}, input));
    RenderedPrompt prompt{opening(systems_of(input)), {}};
    State state;
    for (size_t i = 0; i < input.messages.size(); ++i) append_message(input, i, state, prompt);
    if (!input.messages.empty() && input.messages.back().prefix) return prompt;
    if (state.after_tool) prompt.text += kOutputsEnd;
    if (generation_prompt && !state.after_tool) {
      prompt.text.append(kAssistant).append(variant_.answer_begin);
    }
    return prompt;
  }

  std::string opening(std::string_view system) const override { return bos_ + std::string(system); }
  std::string user_turn(std::string_view user) const override {
    return std::string(kUser).append(user).append(kAssistant).append(variant_.answer_begin);
  }
  std::string answer_end() const override { return std::string(kEnd); }

 private:
  // What the published text remembers, some of it for the whole conversation.
  struct State {
    bool after_tool = false;
    bool any_call = false;
    bool any_output = false;
  };

  void append_message(const ChatInput& input, size_t index, State& state,
                      RenderedPrompt& prompt) const {
    const Message& message = input.messages[index];
    std::string& out = prompt.text;
    drop_reasoning(input, index, prompt);
    if (message.role == "user") {
      state.after_tool = false;
      out.append(kUser).append(message.content);
    } else if (message.role == "tool") {
      state.after_tool = true;
      if (std::exchange(state.any_output, true)) {
        out += '\n';
      } else {
        out += kOutputsBegin;
      }
      out.append(kOutputBegin).append(message.content).append(kOutputEnd);
    } else if (message.role == "assistant") {
      append_assistant(input, index, state, prompt);
    }
  }

  void append_assistant(const ChatInput& input, size_t index, State& state,
                        RenderedPrompt& prompt) const {
    const Message& message = input.messages[index];
    std::string& out = prompt.text;
    if (!message.has_content) {
      state.after_tool = false;
      for (const ToolCall& call : message.tool_calls) append_call(call, state, out);
      return;
    }
    if (!message.tool_calls.empty()) {
      prompt.dropped.push_back({index, "tool_calls", 0, message.tool_calls.size(), kDropsCalls});
    }
    if (std::exchange(state.after_tool, false)) {
      out += kOutputsEnd;
      append_answer(out, message.content, message);
      return;
    }
    const size_t last = message.content.rfind(kEndThink);
    const bool drops = variant_.drops_reasoning && last != std::string::npos;
    out += kAssistant;
    append_answer(out, answer_of(input, index, drops ? last + kEndThink.size() : 0, prompt),
                  message);
  }

  // The end of the calls follows each call but the first, as in the published text.
  static void append_call(const ToolCall& call, State& state, std::string& out) {
    const bool first = !std::exchange(state.any_call, true);
    if (first) {
      out.append(kAssistant).append(kCallsBegin);
    } else {
      out += '\n';
    }
    out.append(kCallBegin).append(call.type).append(kSeparator).append(call.name);
    out.append("\n```json\n").append(call.arguments).append("\n```").append(kCallEnd);
    if (!first) out.append(kCallsEnd).append(kEnd);
  }

  std::string bos_;
  Variant variant_;
};

class DeepSeekV31 final : public ChatTemplate {
 public:
  explicit DeepSeekV31(const TemplateSettings& settings)
      : bos_(settings.bos), thinking_(settings.thinking.value_or(false)) {}
  std::string_view name() const override { return "deepseek-v3.1"; }

  Result<RenderedPrompt> render(const ChatInput& input, bool generation_prompt) const override {
    EMBER_TRY(check_input({.name = name(), .tool_messages = true, .null_content = true}, input));
    RenderedPrompt prompt{opening(systems_of(input)), {}};
    State state;
    for (size_t i = 0; i < input.messages.size(); ++i) append_message(input, i, state, prompt);
    if (generation_prompt && state.after_user) prompt.text.append(kAssistant).append(mode());
    return prompt;
  }

  std::string opening(std::string_view system) const override { return bos_ + std::string(system); }
  std::string user_turn(std::string_view user) const override {
    return std::string(kUser).append(user).append(kAssistant).append(mode());
  }
  std::string answer_end() const override { return std::string(kEnd); }

 private:
  struct State {
    bool after_user = false;
    bool after_tool = false;
  };
  std::string_view mode() const { return thinking_ ? kThink : kEndThink; }

  void append_message(const ChatInput& input, size_t index, State& state,
                      RenderedPrompt& prompt) const {
    const Message& message = input.messages[index];
    std::string& out = prompt.text;
    drop_reasoning(input, index, prompt);
    if (message.role == "user") {
      state = {.after_user = true};
      out.append(kUser).append(message.content);
    } else if (message.role == "tool") {
      state = {.after_tool = true};
      out.append(kOutputBegin).append(message.content).append(kOutputEnd);
    } else if (message.role == "assistant" && !message.tool_calls.empty()) {
      if (state.after_user) out.append(kAssistant).append(kEndThink);
      state = {};
      append_calls(message, out);
    } else if (message.role == "assistant") {
      if (state.after_user) out.append(kAssistant).append(message.prefix ? mode() : kEndThink);
      const size_t first = message.content.find(kEndThink);
      const bool drops = !state.after_tool && first != std::string::npos;
      append_answer(out, answer_of(input, index, drops ? first + kEndThink.size() : 0, prompt),
                    message);
      state = {};
    }
  }

  static void append_calls(const Message& message, std::string& out) {
    if (message.has_content) out += message.content;
    out += kCallsBegin;
    for (const ToolCall& call : message.tool_calls) {
      out.append(kCallBegin).append(call.name).append(kSeparator).append(call.arguments);
      out += kCallEnd;
    }
    out.append(kCallsEnd).append(kEnd);
  }

  std::string bos_;
  bool thinking_;
};

}  // namespace

std::unique_ptr<ChatTemplate> make_deepseek_v2(const TemplateSettings& settings) {
  return std::make_unique<DeepSeekV2>(settings);
}
std::unique_ptr<ChatTemplate> make_deepseek_v3(const TemplateSettings& settings) {
  return std::make_unique<DeepSeekV3>(settings.bos, DeepSeekV3::Variant{"deepseek-v3"});
}
std::unique_ptr<ChatTemplate> make_deepseek_r1(const TemplateSettings& settings) {
  return std::make_unique<DeepSeekV3>(settings.bos,
                                      DeepSeekV3::Variant{"deepseek-r1", true, "<think>\n"});
}
std::unique_ptr<ChatTemplate> make_deepseek_r1_first(const TemplateSettings& settings) {
  return std::make_unique<DeepSeekV3>(settings.bos, DeepSeekV3::Variant{"deepseek-r1-first", true});
}
std::unique_ptr<ChatTemplate> make_deepseek_v31(const TemplateSettings& settings) {
  return std::make_unique<DeepSeekV31>(settings);
}

}  // namespace ember
