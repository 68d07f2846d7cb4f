// Messages: reads a messages file; strict, because a message that is lost changes the answer.
#include <optional>
#include <utility>

#include "engine/text/chat_template.h"
#include "engine/text/json_view.h"

namespace ember {
namespace {

Result<Message> parse_message(const JsonView& view) {
  EMBER_TRY(view.expect_object());
  Message message;
  EMBER_ASSIGN(const JsonView role, view.member("role"));
  EMBER_ASSIGN(message.role, role.string());
  // What would change the prompt and cannot be carried is refused; other keys ("name") mean nothing
  // to the templates.
  for (const std::string_view key : {"tool_calls", "function_call", "tool_call_id"}) {
    if (const std::optional<JsonView> calls = view.find(key)) {
      return Error{ErrorCode::kInvalidArgument,
                   calls->place() + ": tool calls are not supported, only text in \"content\""};
    }
  }
  EMBER_ASSIGN(const JsonView content, view.member("content"));
  EMBER_ASSIGN(message.content, content.string());
  return message;
}

}  // namespace

Result<std::vector<Message>> parse_messages(std::string_view json_text) {
  EMBER_ASSIGN(const Json document, parse_json(json_text, "messages"));
  std::optional<JsonView> list(JsonView(document, "messages"));
  if (document.is_object()) {
    EMBER_ASSIGN(list, list->member("messages"));
  } else if (!document.is_array()) {
    return list->wrong("an array of {\"role\", \"content\"}, or an object with \"messages\"");
  }
  EMBER_TRY(list->expect_array());
  if (list->value().empty()) return list->wrong("at least one message");
  std::vector<Message> messages;
  for (size_t i = 0; i < list->value().size(); ++i) {
    EMBER_ASSIGN(Message message, parse_message(list->element(i)));
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace ember
