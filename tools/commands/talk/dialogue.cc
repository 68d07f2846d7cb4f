// Dialogue: a chat session behind the prompt sign of DeepSeek's script.
#include "tools/commands/talk/dialogue.h"

#include <memory>
#include <string>

#include "engine/runtime/chat_session.h"
#include "engine/text/chat_template.h"
#include "tools/commands/messages.h"
#include "tools/commands/talk/report.h"

namespace ember {
namespace {

bool next_line(Holding& holding, std::istream& in, std::string& line) {
  bool got = false;
  run_beside(
      holding, [&] { got = static_cast<bool>(std::getline(in, line)); },
      [](bool) { return false; });
  return got;
}

}  // namespace

Status run_dialogue(Holding& holding, const GenerateOptions& options, std::istream& in,
                    std::ostream& out) {
  Engine& engine = holding.engine();
  EMBER_ASSIGN(const std::unique_ptr<ChatTemplate> chat_template,
               ChatTemplate::choose(engine.tokenizer(), options.engine.template_name,
                                    options.engine.thinking));
  EMBER_ASSIGN(const std::string system, read_system(options.prompt.system));
  std::unique_ptr<ChatSession> session;
  ConversationClaim claim;
  const auto begin_anew = [&]() -> Status {
    EMBER_ASSIGN(session, ChatSession::begin(engine, *chat_template, system));
    claim = holding.claim(session->conversation().id);
    return {};
  };
  EMBER_TRY(begin_anew());
  TurnOptions turn;
  turn.max_tokens = options.max_tokens;
  turn.temperature = options.temperature;
  turn.seed = options.seed;
  turn.on_text = [&](TokenId, std::string_view text) {
    if (!options.json) out << text << std::flush;
  };
  std::string line;
  while ((options.json || out << ">>> " << std::flush) && next_line(holding, in, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line == "/exit") break;
    if (line == "/clear") {
      EMBER_TRY(begin_anew());
      continue;
    }
    if (line.empty()) continue;
    const Result<TurnOutcome> answer = session->ask(line, turn);
    if (!answer.ok()) {
      print_error(answer.error().message);
      // Its question stands in the conversation: another one begins.
      EMBER_TRY(begin_anew());
    } else if (options.json) {
      out << turn_json({.outcome = answer->outcome,
                        .answer = answer->answer,
                        .answer_ids = &answer->answer_ids,
                        .finished_cut_answer = false,
                        .durable = answer->durable})
          << std::endl;
    } else {
      out << std::endl;
    }
  }
  return {};
}

}  // namespace ember
