// Messages: reads a messages file; strict, because a message that is lost changes the answer.
#include <optional>
#include <utility>

#include "engine/text/chat_template.h"
#include "engine/text/json_view.h"
#include "engine/text/python_json.h"

namespace ember {
namespace {

Result<std::string> text_or(const JsonView& view, std::string_view key, std::string otherwise) {
  const std::optional<JsonView> member = view.find(key);
  if (!member) return otherwise;
  return member->string();
}

// `ordered` is the same value with its keys in order, for what is shown to the model as JSON.
Result<ToolCall> parse_call(const JsonView& view, const OrderedJson& ordered) {
  EMBER_TRY(view.expect_object());
  ToolCall call;
  EMBER_ASSIGN(call.id, text_or(view, "id", ""));
  EMBER_ASSIGN(call.type, text_or(view, "type", call.type));
  EMBER_ASSIGN(const JsonView function, view.member("function"));
  EMBER_ASSIGN(const JsonView name, function.member("name"));
  EMBER_ASSIGN(call.name, name.string());
  EMBER_ASSIGN(const JsonView arguments, function.member("arguments"));
  if (arguments.value().is_object()) {
    call.arguments = python_json(ordered["function"]["arguments"]);
  } else {
    EMBER_ASSIGN(call.arguments, arguments.string());
  }
  return call;
}

Status parse_calls(const JsonView& view, const OrderedJson& ordered, Message& message) {
  const std::optional<JsonView> calls = view.find("tool_calls");
  if (!calls) return {};
  EMBER_TRY(calls->expect_array());
  for (size_t i = 0; i < calls->value().size(); ++i) {
    EMBER_ASSIGN(ToolCall call, parse_call(calls->element(i), ordered["tool_calls"][i]));
    message.tool_calls.push_back(std::move(call));
  }
  return {};
}

Status parse_content(const JsonView& view, Message& message) {
  const std::optional<JsonView> content = view.find("content");
  message.has_content = content.has_value();
  if (content) {
    EMBER_ASSIGN(message.content, content->string());
    return {};
  }
  if (!message.tool_calls.empty()) return {};
  EMBER_ASSIGN(const JsonView missing, view.member("content"));
  return missing.wrong("a string (null only beside tool_calls)");
}

Result<Message> parse_message(const JsonView& view, const OrderedJson& ordered) {
  EMBER_TRY(view.expect_object());
  Message message;
  EMBER_ASSIGN(const JsonView role, view.member("role"));
  EMBER_ASSIGN(message.role, role.string());
  // What would change the prompt and cannot be carried is refused; unknown keys mean nothing to the
  // templates.
  if (const std::optional<JsonView> old = view.find("function_call")) {
    return Error{ErrorCode::kInvalidArgument,
                 old->place() + ": not supported; write it as one of \"tool_calls\""};
  }
  EMBER_TRY(parse_calls(view, ordered, message));
  EMBER_TRY(parse_content(view, message));
  if (const std::optional<JsonView> reasoning = view.find("reasoning_content")) {
    EMBER_ASSIGN(message.reasoning, reasoning->string());
  }
  EMBER_ASSIGN(message.name, text_or(view, "name", ""));
  EMBER_ASSIGN(message.tool_call_id, text_or(view, "tool_call_id", ""));
  if (const std::optional<JsonView> prefix = view.find("prefix")) {
    EMBER_ASSIGN(message.prefix, prefix->boolean());
  }
  return message;
}

}  // namespace

Result<ChatInput> parse_messages(std::string_view json_text) {
  EMBER_ASSIGN(const Json document, parse_json(json_text, "messages"));
  EMBER_ASSIGN(const OrderedJson ordered, parse_ordered_json(json_text, "messages"));
  std::optional<JsonView> list(JsonView(document, "messages"));
  ChatInput input;
  if (document.is_object()) {
    if (const std::optional<JsonView> tools = list->find("tools")) {
      EMBER_TRY(tools->expect_array());
      if (!tools->value().empty()) input.tools = ordered["tools"].dump();
    }
    EMBER_ASSIGN(list, list->member("messages"));
  } else if (!document.is_array()) {
    return list->wrong("an array of {\"role\", \"content\"}, or an object with \"messages\"");
  }
  EMBER_TRY(list->expect_array());
  if (list->value().empty()) return list->wrong("at least one message");
  const OrderedJson& messages = document.is_object() ? ordered["messages"] : ordered;
  for (size_t i = 0; i < list->value().size(); ++i) {
    EMBER_ASSIGN(Message message, parse_message(list->element(i), messages[i]));
    input.messages.push_back(std::move(message));
  }
  return input;
}

}  // namespace ember
