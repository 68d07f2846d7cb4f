// Handing command lines over, and running those that came.
#include "tools/foreign_commands.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "service/holder/holder_client.h"
#include "store/edit/live_editor.h"
#include "store/inspect/live_store.h"
#include "store/store_directory.h"
#include "tools/commands/command_context.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/messages.h"
#include "tools/commands/stop_on_signal.h"
#include "tools/commands/talk/engine_difference.h"
#include "tools/help_form.h"
#include "tools/inspection_commands.h"
#include "tools/local_context.h"
#include "tools/talk_flags.h"

namespace ember {
namespace {

// A holder has the store's lock a little before it answers, and a little after.
constexpr int64_t kAnswerPatienceUs = 2'000'000;
constexpr int kAnswerPauseUs = 50'000;

HolderRequest request_of(const std::vector<std::string>& words, const std::string& store) {
  const CommandContext local = local_context();
  HolderRequest request;
  std::error_code error;
  request.arguments = words;
  request.folder = std::filesystem::current_path(error).string();
  request.store = store;
  request.width = static_cast<uint16_t>(std::min<size_t>(local.io.width, UINT16_MAX));
  request.colour = local.io.colour;
  request.progress = local.io.progress;
  request.interactive = local.io.interactive;
  request.on_terminal = local.io.on_terminal;
  return request;
}

int chat_of_other(const HolderRequest& request, HolderStreams& streams, Holding& holding) {
  CLI::App root("", "emberkv");
  ChatOptions options;
  add_chat(root, options);
  try {
    root.parse(std::vector<std::string>(request.arguments.rbegin(), request.arguments.rend()));
  } catch (const CLI::ParseError& error) {
    print_error(streams.err(), usage_error(root, error));
    return kExitUsage;
  }
  return run_chat_of_other(std::move(options), request, streams, holding);
}

// Whether that path, as it came, is the store that this process holds.
bool is_own_store(const std::string& path, Holding& holding) {
  std::error_code error;
  return std::filesystem::equivalent(path, holding.store(), error) && !error;
}

// What it refers to outlives the command.
CommandContext context_of_other(const HolderRequest& request, HolderStreams& streams,
                                Holding& holding) {
  const auto meant = [&request](StoreChoice choice) {
    choice.path = choice.path.empty() ? request.store : path_from(request.folder, choice.path);
    return choice;
  };
  const EngineCall call = [&holding](const std::function<void()>& work) {
    return holding.call(work);
  };
  const StoreOpener open_reader =
      [&holding, call, meant](const StoreChoice& given) -> Result<std::shared_ptr<StoreReader>> {
    const StoreChoice choice = meant(given);
    if (!is_own_store(choice.path, holding)) return open_at_rest(choice);
    if (choice.encryption.on && !holding.flags().encryption.on) {
      return Error{ErrorCode::kInvalidArgument, choice.path + ": the store lies in clear"};
    }
    EMBER_ASSIGN(std::unique_ptr<StoreReader> live,
                 open_live_store(holding.engine().cache(), call));
    return std::shared_ptr<StoreReader>(std::move(live));
  };
  const LiveOpener open_live = [&holding, &streams, call,
                                meant](const StoreChoice& given) -> Result<LiveCache> {
    const StoreChoice choice = meant(given);
    if (!is_own_store(choice.path, holding)) return no_live_cache(choice);
    return LiveCache{.cache = &holding.engine().cache(),
                     .call = call,
                     .wait_for =
                         [&holding, &streams](const std::function<Ticket()>& begin) {
                           return holding.wait_for(begin,
                                                   [&streams] { return streams.cancelled(); });
                         },
                     .numerics_build = holding.engine().identity().numerics_build};
  };
  // Only this process's own store is changed live: what holds another one is not known.
  const EditorOpener open_editor = [&holding, &streams, call, meant](
                                       const StoreChoice& given,
                                       uint64_t bytes) -> Result<std::shared_ptr<StoreEditor>> {
    const StoreChoice choice = meant(given);
    if (!is_own_store(choice.path, holding)) return edit_at_rest(choice, bytes);
    const auto cancelled = [&streams] { return streams.cancelled(); };
    EMBER_ASSIGN(std::unique_ptr<StoreEditor> live,
                 open_live_editor(holding.engine().cache(),
                                  {.call = call,
                                   .wait_for =
                                       [&holding, cancelled](const std::function<Ticket()>& begin) {
                                         return holding.wait_for(begin, cancelled);
                                       },
                                   .cancelled = cancelled}));
    return std::shared_ptr<StoreEditor>(std::move(live));
  };
  return {.io = {.in = streams.in(),
                 .out = streams.out(),
                 .err = streams.err(),
                 .width = request.width,
                 .on_terminal = request.on_terminal,
                 .colour = request.colour,
                 .progress = request.progress,
                 .interactive = request.interactive,
                 .cancelled = [&streams] { return streams.cancelled(); }},
          .open_reader = open_reader,
          .open_live = open_live,
          .open_editor = open_editor,
          .claims = holding.claims(),
          .folder = request.folder,
          .default_store = request.store,
          .load = [&holding]() -> std::optional<SchedulerLoad> {
            SchedulerLoad load;
            const Status told = holding.call([&] { load = holding.engine().scheduler().load(); });
            return told.ok() ? std::optional(load) : std::nullopt;
          }};
}

int warm_of_other(const HolderRequest& request, HolderStreams& streams, Holding& holding) {
  CLI::App root("", "emberkv");
  WarmOptions options;
  add_warm(root, options);
  try {
    root.parse(std::vector<std::string>(request.arguments.rbegin(), request.arguments.rend()));
  } catch (const CLI::ParseError& error) {
    print_error(streams.err(), usage_error(root, error));
    return kExitUsage;
  }
  CommandContext context = context_of_other(request, streams, holding);
  const Result<int> code = run_warm_of_other(std::move(options), context, holding);
  if (code.ok()) return *code;
  print_error(streams.err(), code.error().message);
  return kExitFailed;
}

// A file in memory that a command's output goes to.
class KeptOutput {
 public:
  KeptOutput() : fd_(::memfd_create("output", MFD_CLOEXEC)) {}
  KeptOutput(const KeptOutput&) = delete;
  KeptOutput& operator=(const KeptOutput&) = delete;
  ~KeptOutput() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  std::string text() const {
    std::string all;
    char part[4096];
    ssize_t got = 0;
    while ((got = ::pread(fd_, part, sizeof part, static_cast<off_t>(all.size()))) > 0) {
      all.append(part, static_cast<size_t>(got));
    }
    return all;
  }

 private:
  int fd_;
};

// What a command said on standard error, without the program's name and the line's end.
Error error_of(std::string said) {
  constexpr std::string_view kName = "emberkv: ";
  if (said.rfind(kName, 0) == 0) said.erase(0, kName.size());
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return {ErrorCode::kIo, said.empty() ? "the command failed" : said};
}

}  // namespace

Result<std::string> ask_command(const std::vector<std::string>& words, const std::string& store) {
  EMBER_ASSIGN(const std::unique_ptr<HolderClient> client, HolderClient::connect(store));
  if (client == nullptr) {
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    CommandContext context{.io = {.in = in, .out = out, .err = err},
                           .open_reader = open_at_rest,
                           .open_live = no_live_cache,
                           .open_editor = edit_at_rest};
    if (run_inspection(words, context) != kExitOk) return error_of(err.str());
    return out.str();
  }
  const KeptOutput out;
  const KeptOutput err;
  if (out.fd() < 0 || err.fd() < 0) return Error{ErrorCode::kIo, "no memory for an answer"};
  HolderRequest request = request_of(words, store);
  request.progress = request.colour = request.interactive = request.on_terminal = false;
  const ClientStreams streams{.in = STDIN_FILENO, .out = out.fd(), .err = err.fd()};
  EMBER_ASSIGN(const int code, client->run(request, streams));
  if (code != kExitOk) return error_of(err.text());
  return out.text();
}

Result<std::optional<int>> hand_over(const std::vector<std::string>& words,
                                     const std::string& store,
                                     const std::function<bool()>& stopped) {
  EMBER_ASSIGN(const std::unique_ptr<HolderClient> client, HolderClient::connect(store));
  if (client == nullptr) return std::optional<int>();
  std::cout.flush();
  EMBER_ASSIGN(const int code,
               client->run(request_of(words, store), ClientStreams{.stopped = stopped}));
  return std::optional<int>(code);
}

Result<int> chat_or_attach(const ChatOptions& options, const std::vector<std::string>& words) {
  const std::string store =
      options.engine.store.empty() ? default_store_path() : options.engine.store;
  const int64_t deadline_us = system_clock().now_us() + kAnswerPatienceUs;
  bool last_try = false;
  while (true) {
    const Result<std::optional<int>> handed = hand_over(words, store);
    if (handed.ok() && *handed) return **handed;
    const Result<int> ended = handed.ok() ? run_chat(options, run_foreign_command, std::cout)
                                          : Result<int>(handed.error());
    const bool held = !ended.ok() && ended.error().code == ErrorCode::kBusy;
    // A holder that ended meanwhile has left the store to others: one try more, whatever it took.
    if (!held || last_try) return ended;
    last_try = system_clock().now_us() >= deadline_us;
    ::usleep(kAnswerPauseUs);
  }
}

Result<int> warm_or_attach(const WarmOptions& options, const std::vector<std::string>& words,
                           CommandContext& context) {
  const std::string store =
      options.engine.store.empty() ? default_store_path() : options.engine.store;
  {
    const StopOnSignal signals;
    EMBER_ASSIGN(const std::optional<int> handed, hand_over(words, store, StopOnSignal::asked));
    if (handed) return *handed;
  }
  return run_warm(options, run_foreign_command, context);
}

int run_foreign_command(const HolderRequest& request, HolderStreams& streams, Holding& holding) {
  const std::string command = request.arguments.empty() ? "" : request.arguments.front();
  if (command == "chat") return chat_of_other(request, streams, holding);
  if (command == "warm") return warm_of_other(request, streams, holding);
  CommandContext context = context_of_other(request, streams, holding);
  return run_inspection(request.arguments, context);
}

}  // namespace ember
