// Chat template: which template a text is, and what all of them ask of their input.
#include "engine/text/chat_template.h"

#include <utility>

#include "engine/text/known_templates.h"
#include "engine/text/template_text.h"

namespace ember {
namespace {

struct Known {
  std::string_view name;
  TemplateMaker make;
  std::string_view digest;  // template_digest of a published text; empty: only chosen by name
};

constexpr Known kKnown[] = {
    {"deepseek-v3", make_deepseek_v3, "7cff167f5ed71ce6f901b114647fc6cf"},
    {"deepseek-r1", make_deepseek_r1, "e4e1699fe6944e80ee2e0188684da05e"},
    {"deepseek-r1-first", make_deepseek_r1_first, "32b30b34286bd3a2d39aff4a4162d900"},
    {"deepseek-v3.1", make_deepseek_v31, "542da0a7bdacd401fd59463f72758a0e"},
    {"deepseek-v3.1", make_deepseek_v31,
     "0d492e11518af0de70940dc79d404535"},  // llama.cpp's, by enable_thinking too
    {"deepseek-v2", make_deepseek_v2, "6b64f2c0de1c99e54ca2bb1aeacff653"},
    {"kimi-k2", make_kimi_k2, "af6c78f09fe5f3ef121e820e04180673"},
    {"kimi-k2-tools", make_kimi_k2_tools, ""},
    {"kimi-k2-thinking", make_kimi_k2_thinking, "34ad12b10fdd6692bbc8e9b677c2a623"},
    {"glm-4.7", make_glm_47, "f8c8f8dfb825df50e9f1b64a68b50bc3"},
};

std::string known_names() {
  std::string names = "known: ";
  std::string_view last;
  for (const Known& known : kKnown) {
    if (known.name == last) continue;  // another text of the same
    names.append(last.empty() ? "" : ", ").append(known.name);
    last = known.name;
  }
  return names;
}

Error wrong_message(size_t index, const std::string& what) {
  return {ErrorCode::kInvalidArgument, "messages[" + std::to_string(index) + "]" + what};
}

bool knows_role(const TemplateAbilities& able, std::string_view role) {
  return role == "system" || role == "user" || role == "assistant" ||
         (role == "tool" && able.tool_messages);
}

Status check_message(const TemplateAbilities& able, const ChatInput& input, size_t index) {
  const Message& message = input.messages[index];
  const std::string name(able.name);
  if (!knows_role(able, message.role)) {
    return wrong_message(index,
                         ": the template " + name + " cannot render the role \"" + message.role +
                             "\" (it knows system, user" +
                             (able.tool_messages ? ", assistant and tool)" : " and assistant)"));
  }
  if (!message.tool_calls.empty() && (message.role != "assistant" || !able.tool_messages)) {
    return wrong_message(index, ".tool_calls: the template " + name + " has no place for them" +
                                    (able.tool_messages ? " in the role " + message.role : ""));
  }
  if (!message.has_content && (message.tool_calls.empty() || !able.null_content)) {
    return wrong_message(index, ".content: found null, expected a string");
  }
  const bool may_go_on = message.role == "assistant" && message.tool_calls.empty() &&
                         index + 1 == input.messages.size();
  if (message.prefix && !may_go_on) {
    return wrong_message(index,
                         ".prefix: only the last message can be gone on with, one of the "
                         "assistant without tool calls");
  }
  return {};
}

}  // namespace

Status check_input(const TemplateAbilities& able, const ChatInput& input) {
  if (!input.tools.empty() && !able.tool_definitions) {
    return {ErrorCode::kInvalidArgument,
            "tools: the template " + std::string(able.name) +
                " has no place for tool definitions; tell of them in a system message"};
  }
  for (size_t i = 0; i < input.messages.size(); ++i) EMBER_TRY(check_message(able, input, i));
  return {};
}

void drop_reasoning(const ChatInput& input, size_t message, RenderedPrompt& prompt) {
  const auto& reasoning = input.messages[message].reasoning;
  if (!reasoning || reasoning->empty()) return;
  prompt.dropped.push_back({message, "reasoning_content", 0, reasoning->size(), kDropsReasoning});
}

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::choose(const Tokenizer& tokenizer,
                                                           std::string_view name,
                                                           std::optional<bool> thinking) {
  const std::string& text = tokenizer.chat_template();
  if (name.empty() && text.empty()) {
    return Error{ErrorCode::kUnsupported,
                 "tokenizer_config.json has no chat_template; name one (" + known_names() + ")"};
  }
  const std::string digest = name.empty() ? template_digest(text) : std::string();
  for (const Known& known : kKnown) {
    if (name.empty() ? known.digest != digest : known.name != name) continue;
    return known.make({tokenizer.bos_text(), tokenizer.eos_text(), thinking});
  }
  if (!name.empty()) {
    return Error{ErrorCode::kUnsupported,
                 "there is no chat template \"" + std::string(name) + "\" (" + known_names() + ")"};
  }
  return Error{ErrorCode::kUnsupported,
               "tokenizer_config.json: the chat_template (digest " + digest +
                   ") equals none that is known; name the one that it means (" + known_names() +
                   ")"};
}

}  // namespace ember
