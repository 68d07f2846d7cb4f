// chat: opens the engine once, then talks: with its own user, and with those of other processes.
#include "tools/commands/talk/chat.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>
#include <utility>

#include "engine/text/chat_template.h"
#include "tools/commands/command_context.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/messages.h"
#include "tools/commands/progress.h"
#include "tools/commands/talk/engine_difference.h"
#include "tools/commands/talk/line_input.h"
#include "tools/commands/talk/talk.h"

namespace ember {
namespace {

TalkOptions talk_options(const ChatOptions& options, const std::string& system) {
  return {.resume = options.resume,
          .system = system,
          .max_tokens = options.max_tokens,
          .temperature = options.temperature,
          .seed = options.seed,
          .json = options.json,
          .interactive = options.interactive};
}

volatile std::sig_atomic_t asked_to_end = 0;

void note_end(int signal) { asked_to_end = signal; }

void catch_ends(void (*handler)(int)) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    struct sigaction old {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    if (::sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN) {
      ::sigaction(signal, &action, nullptr);
    }
  }
}

// The engine thread's part while talks go on: when it is over.
class ChatEnd {
 public:
  ChatEnd(Holding& holding, LineInput& input) : holding_(holding), input_(input) {
    catch_ends(note_end);
    // Who reads this talk's answers may go, as `head` does: a write fails, and no other talk ends.
    std::signal(SIGPIPE, SIG_IGN);
  }
  ~ChatEnd() {
    std::signal(SIGPIPE, SIG_DFL);
    catch_ends(SIG_DFL);
  }

  // Asked in every tick. What comes from this terminal (^C, its closing) ends the own talk first,
  // where others go on; SIGTERM, and a second signal, end all, as they would have without us: the
  // store bears it.
  bool others_go_on(bool own_ended) {
    const int signal = std::exchange(asked_to_end, 0);
    const bool own_is_over = own_over_ || own_ended;
    if (signal != 0 && (signal == SIGTERM || own_is_over || holding_.talks() == 0)) {
      catch_ends(SIG_DFL);
      ::raise(signal);
    }
    if (signal != 0) {
      own_over_ = true;
      input_.interrupt();
    }
    if ((own_over_ || own_ended) && !std::exchange(told_, holding_.talks() > 0) && told_) tell();
    return holding_.talks() > 0;
  }
  bool own_is_over() const { return own_over_; }

 private:
  void tell() const {
    if (isatty(STDERR_FILENO) != 1) return;
    print_warning(std::to_string(holding_.talks()) +
                  " talks of other terminals go on through this process; ^C ends them");
  }

  Holding& holding_;
  LineInput& input_;
  std::atomic<bool> own_over_{false};
  bool told_ = false;
};

}  // namespace

Result<int> run_chat(const ChatOptions& options, const ForeignCommand& foreign, std::ostream& out) {
  EMBER_ASSIGN(const std::string system, read_system(options.system));
  Progress progress;
  EMBER_ASSIGN(const std::unique_ptr<Engine> engine,
               open_engine(options.engine, [&progress](std::string_view what, double done) {
                 progress.show(what, done);
               }));
  EMBER_ASSIGN(const std::unique_ptr<ChatTemplate> chat_template,
               ChatTemplate::choose(engine->tokenizer(), options.engine.template_name,
                                    options.engine.thinking));
  progress.clear();
  const std::unique_ptr<LineInput> input = make_line_input(STDIN_FILENO);
  Result<int> code = kExitOk;
  {
    Holding holding(*engine, options.engine, foreign);
    holding.set_template(chat_template.get());
    ChatEnd end(holding, *input);
    const TalkStreams streams{.in = input->stream(),
                              .out = out,
                              .err = std::cerr,
                              .progress = isatty(STDERR_FILENO) == 1,
                              .stopped = [&end] { return end.own_is_over(); }};
    const TalkOptions talk = talk_options(options, system);
    run_beside(
        holding, [&] { code = run_talk(talk, streams, holding); },
        [&end](bool own_ended) { return end.others_go_on(own_ended); });
  }
  write_trace_file(*engine, options.engine);
  return code;
}

int run_chat_of_other(ChatOptions options, const HolderRequest& request, HolderStreams& streams,
                      Holding& holding) {
  Status refused;
  if (holding.chat_template() == nullptr) {
    refused = {ErrorCode::kBusy, "the process that holds the store (pid " +
                                     std::to_string(::getpid()) +
                                     ") is no chat; try again when it has ended"};
  } else {
    EngineFlags own = holding.flags();
    own.context_tokens = holding.engine().context_tokens();  // never changes
    refused = check_same_engine(own, options.engine, request.folder);
  }
  if (std::optional<std::string>& file = options.system.file) {
    file = path_from(request.folder, *file);
    std::error_code error;
    if (refused.ok() && !std::filesystem::is_regular_file(*file, error)) {
      // Another's pipe could hold this process up, and its /dev/stdin would be ours.
      refused = {ErrorCode::kInvalidArgument, *file + ": is no file"};
    }
  }
  const Result<std::string> system =
      refused.ok() ? read_system(options.system) : Result<std::string>(refused.error());
  if (!system.ok()) {
    print_error(streams.err(), system.error().message);
    return kExitFailed;
  }
  options.interactive = request.interactive;
  const TalkStreams talk_streams{.in = streams.in(),
                                 .out = streams.out(),
                                 .err = streams.err(),
                                 .progress = request.progress,
                                 .stopped = [&streams] { return streams.cancelled(); }};
  holding.talk_begins();
  streams.afterwards([&holding] { holding.talk_ends(); });
  const Result<int> code = run_talk(talk_options(options, *system), talk_streams, holding);
  if (code.ok()) return *code;
  print_error(streams.err(), code.error().message);
  return kExitFailed;
}

}  // namespace ember
