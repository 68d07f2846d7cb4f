// Known templates: one maker each, for chat_template.cc, which knows when to call which.
//
// Journey    none; inside of chat_template.h
// Invariant  each renders what its published text renders, quirks included; exceptions are named
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/text/chat_template.h"

namespace ember {

// What a maker may want to know of the tokenizer and the user.
struct TemplateSettings {
  std::string bos;
  std::string eos;
  std::optional<bool> thinking;
};

using TemplateMaker = std::unique_ptr<ChatTemplate> (*)(const TemplateSettings& settings);

std::unique_ptr<ChatTemplate> make_deepseek_v2(const TemplateSettings& settings);
std::unique_ptr<ChatTemplate> make_deepseek_v3(const TemplateSettings& settings);
std::unique_ptr<ChatTemplate> make_deepseek_r1(const TemplateSettings& settings);
// Without the opened <think> with which R1's template ends since February 2025.
std::unique_ptr<ChatTemplate> make_deepseek_r1_first(const TemplateSettings& settings);
std::unique_ptr<ChatTemplate> make_deepseek_v31(const TemplateSettings& settings);
std::unique_ptr<ChatTemplate> make_kimi_k2(const TemplateSettings& settings);
// Of August 2025: with tool calls, names and another system text.
std::unique_ptr<ChatTemplate> make_kimi_k2_tools(const TemplateSettings& settings);
std::unique_ptr<ChatTemplate> make_kimi_k2_thinking(const TemplateSettings& settings);
std::unique_ptr<ChatTemplate> make_glm_47(const TemplateSettings& settings);

// What every template does before it renders: refuses roles, fields and places of a prefix that it
// has no words for.
struct TemplateAbilities {
  std::string_view name;
  bool tool_definitions = false;
  bool tool_messages = false;  // role "tool" and tool_calls
  bool null_content = false;   // a null content may stand beside tool calls
};
Status check_input(const TemplateAbilities& able, const ChatInput& input);

inline constexpr std::string_view kDropsReasoning =
    "the template keeps no reasoning of earlier turns";
inline constexpr std::string_view kDropsCalls =
    "the template renders a content or tool calls, not both";
inline constexpr std::string_view kKnowsNoCalls = "the template renders no tool calls";

// Notes that a message's reasoning_content is left out, if it has one.
void drop_reasoning(const ChatInput& input, size_t message, RenderedPrompt& prompt);

}  // namespace ember
