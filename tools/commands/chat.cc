// chat: opens or resumes a conversation, finishes a cut answer, then answers line by line.
#include "tools/commands/chat.h"

#include <cstdio>
#include <memory>
#include <utility>

#include "engine/runtime/chat_session.h"
#include "engine/text/chat_template.h"
#include "engine/text/text_file.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/progress.h"
#include "tools/commands/report.h"

namespace ember {
namespace {

class ChatLoop {
 public:
  ChatLoop(const ChatOptions& options, ChatSession& session, Progress& progress, std::ostream& out)
      : options_(options), session_(session), progress_(progress), out_(out) {}

  int run(std::istream& in) {
    if (session_.has_cut_answer()) {
      print_question(session_.conversation().turns.back().user);
      report(session_.finish_answer(turn_options()), true);
      if (session_.has_cut_answer()) return kExitFailed;
    }
    std::string line;
    while (print_prompt_sign(), std::getline(in, line)) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line == "/exit") break;
      if (line.empty()) continue;
      report(session_.ask(line, turn_options()), false);
      // The question stands and its answer failed: only another run can go on with it.
      if (session_.has_cut_answer()) return kExitFailed;
    }
    return failed_ && !options_.interactive ? kExitFailed : kExitOk;
  }

 private:
  TurnOptions turn_options() {
    TurnOptions turn;
    turn.max_tokens = options_.max_tokens;
    turn.temperature = options_.temperature;
    turn.seed = options_.seed;
    turn.on_text = [this](TokenId id, std::string_view text) {
      progress_.clear();
      if (options_.json) {
        out_ << delta_json(id, text) << std::endl;
      } else {
        out_ << text << std::flush;
      }
    };
    return turn;
  }

  void report(const Result<TurnOutcome>& turn, bool finished_cut_answer) {
    progress_.clear();
    if (!turn) {
      failed_ = true;
      print_error(turn.error().message);
      if (options_.json) out_ << error_json(turn.error().message) << std::endl;
      return;
    }
    if (!options_.json) {
      out_ << std::endl;
      return;
    }
    out_ << turn_json({.outcome = turn->outcome,
                       .answer = turn->answer,
                       .answer_ids = &turn->answer_ids,
                       .finished_cut_answer = finished_cut_answer,
                       .durable = turn->durable})
         << std::endl;
  }

  void print_question(const std::string& user) {
    if (!options_.json && options_.interactive) out_ << "> " << user << std::endl;
  }
  void print_prompt_sign() {
    if (!options_.json && options_.interactive) out_ << "> " << std::flush;
  }

  const ChatOptions& options_;
  ChatSession& session_;
  Progress& progress_;
  std::ostream& out_;
  bool failed_ = false;
};

Result<std::string> read_system(const ChatOptions& options) {
  if (options.system) return *options.system;
  if (!options.system_file) return std::string();
  EMBER_ASSIGN(std::string text, read_text_file(*options.system_file));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

Result<std::unique_ptr<ChatSession>> open_session(const ChatOptions& options, Engine& engine,
                                                  const ChatTemplate& chat_template,
                                                  const std::string& system) {
  if (!options.resume) return ChatSession::begin(engine, chat_template, system);
  if (engine.cache().conversations() == nullptr) {
    const StoreHealth& health = engine.cache().health();
    return Error{ErrorCode::kInvalidArgument,
                 "conversation " + *options.resume + " cannot be resumed: the store is " +
                     std::string(store_state_name(health.state)) +
                     (health.reason.empty() ? "" : " (" + health.reason + ")")};
  }
  return ChatSession::resume(engine, chat_template, *options.resume);
}

}  // namespace

Result<int> run_chat(const ChatOptions& options, std::istream& in, std::ostream& out) {
  EMBER_ASSIGN(const std::string system, read_system(options));
  Progress progress;
  EMBER_ASSIGN(const std::unique_ptr<Engine> engine,
               open_engine(options.engine, [&progress](std::string_view what, double done) {
                 progress.show(what, done);
               }));
  EMBER_ASSIGN(const std::unique_ptr<ChatTemplate> chat_template,
               ChatTemplate::choose(engine->tokenizer(), options.engine.template_name,
                                    options.engine.thinking));
  EMBER_ASSIGN(const std::unique_ptr<ChatSession> session,
               open_session(options, *engine, *chat_template, system));
  progress.clear();

  const Conversation& conversation = session->conversation();
  if (options.json) {
    out << ready_json({.conversation = &conversation,
                       .resumed = options.resume.has_value(),
                       .cut_answer = session->has_cut_answer(),
                       .context_tokens = engine->context_tokens(),
                       .load_us = engine->load_us(),
                       .health = engine->cache().health()})
        << std::endl;
  } else {
    std::fprintf(stderr, "conversation %s, %zu turns\n", conversation.id.c_str(),
                 conversation.turns.size());
  }
  const int code = ChatLoop(options, *session, progress, out).run(in);
  write_trace_file(*engine, options.engine);
  return code;
}

}  // namespace ember
