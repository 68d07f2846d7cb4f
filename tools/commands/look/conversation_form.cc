// Text and JSON of a whole talk.
#include "tools/commands/look/conversation_form.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

Json identity_json(const Conversation& conversation, const NamespaceNote& note) {
  Json fields = Json::object();
  for (const auto& [name, value] : note.fields) fields[name] = value;
  return {{"namespace", conversation.name_space.hex()},
          {"model", note.model},
          {"fields", std::move(fields)}};
}

Json question_json(const Turn& turn) {
  return {{"role", "user"},
          {"content", valid_utf8(turn.user)},
          {"seed", turn.seed},
          {"temperature", turn.temperature},
          {"max_tokens", turn.max_tokens},
          {"prompt_ids", turn.prompt}};
}

Json answer_json(const Turn& turn, const std::optional<std::string>& answer) {
  const bool cut = turn.state != TurnState::kFinished;
  Json json = {{"role", "assistant"}, {"content", answer ? valid_utf8(*answer) : ""}};
  if (!answer) json["content_unknown"] = true;
  if (cut) json["prefix"] = true;  // a messages file goes on with it
  json["state"] = turn_state_name(turn.state);
  json["finish_reason"] = turn.finish_reason;
  json["answer_ids"] = turn.answer;
  return json;
}

}  // namespace

const char* turn_state_name(TurnState state) {
  return state == TurnState::kFinished ? "finished" : "cut";
}

uint64_t token_count(const Conversation& conversation) {
  uint64_t tokens = 0;
  for (const Turn& turn : conversation.turns) tokens += turn.prompt.size() + turn.answer.size();
  return tokens;
}

void print_conversation(const Conversation& conversation, PrefixText& text, std::ostream& out) {
  out << "conversation " << conversation.id << ", begun "
      << time_text(conversation.created_unix_us) << ", last used "
      << time_text(conversation.updated_unix_us) << '\n';
  if (!conversation.system.empty()) out << "\nsystem\n" << printable(conversation.system) << '\n';
  for (const Turn& turn : conversation.turns) {
    const std::optional<std::string> answer = text.of(conversation.name_space, turn.answer);
    out << "\nuser\n" << printable(turn.user) << "\n\nassistant";
    if (turn.state != TurnState::kFinished) out << " (cut: --resume goes on with it)";
    out << '\n'
        << (answer ? printable(*answer)
                   : counted(turn.answer.size(), "token") + "; the store keeps no tokenizer")
        << '\n';
  }
}

std::string export_json(const Conversation& conversation, const NamespaceNote& note,
                        PrefixText& text) {
  Json json = {{"format", "emberkv conversation"},
               {"version", kConversationFormVersion},
               {"conversation", conversation.id},
               {"scope", conversation.scope},
               {"template", conversation.template_name},
               {"identity", identity_json(conversation, note)},
               {"created_unix_us", conversation.created_unix_us},
               {"updated_unix_us", conversation.updated_unix_us}};
  Json& messages = json["messages"] = Json::array();
  if (!conversation.system.empty()) {
    messages.push_back({{"role", "system"}, {"content", valid_utf8(conversation.system)}});
  }
  for (const Turn& turn : conversation.turns) {
    messages.push_back(question_json(turn));
    const bool asked_only = turn.state != TurnState::kFinished && turn.answer.empty();
    if (asked_only) continue;
    messages.push_back(answer_json(turn, text.of(conversation.name_space, turn.answer)));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ember
