// Handing command lines over, and running those that came.
#include "tools/foreign_commands.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <iostream>
#include <memory>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "service/holder/holder_client.h"
#include "store/inspect/live_store.h"
#include "store/store_directory.h"
#include "tools/commands/engine_difference.h"
#include "tools/commands/exit_code.h"
#include "tools/inspection_commands.h"
#include "tools/local_context.h"
#include "tools/talk_flags.h"

namespace ember {
namespace {

// A holder has the store's lock a little before it answers, and a little after.
constexpr int64_t kAnswerPatienceUs = 2'000'000;
constexpr int kAnswerPauseUs = 50'000;
constexpr std::chrono::milliseconds kWaitSlice{50};

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
  request.interactive = isatty(STDIN_FILENO) == 1;
  return request;
}

int chat_of_other(const HolderRequest& request, HolderStreams& streams, Holding& holding) {
  CLI::App root("", "emberkv");
  ChatOptions options;
  add_chat(root, options);
  try {
    root.parse(std::vector<std::string>(request.arguments.rbegin(), request.arguments.rend()));
  } catch (const CLI::ParseError& error) {
    print_error(streams.err(), error.what());
    return kExitUsage;
  }
  return run_chat_of_other(std::move(options), request, streams, holding);
}

// Whether that path, as it came, is the store that this process holds.
bool is_own_store(const std::string& path, Holding& holding) {
  std::error_code error;
  return std::filesystem::equivalent(path, holding.store(), error) && !error;
}

// Waits on the connection's thread for what the engine's thread has begun.
Status wait_for(const std::function<Ticket()>& begin, const HolderStreams& streams,
                Holding& holding) {
  const auto ended = std::make_shared<std::promise<Status>>();
  std::future<Status> status = ended->get_future();
  const bool begun = holding.call([&] {
    const Ticket ticket = begin();
    if (!ticket) return ended->set_value({});
    holding.engine().scheduler().watch(
        ticket, [ended](const Status& outcome) { ended->set_value(outcome); });
  });
  while (begun && !streams.cancelled()) {
    if (status.wait_for(kWaitSlice) == std::future_status::ready) return status.get();
  }
  return {ErrorCode::kCancelled, "cut short: the process that holds the store ends"};
}

int inspection_of_other(const HolderRequest& request, HolderStreams& streams, Holding& holding) {
  const StoreOpener opener =
      [&](const StoreChoice& choice) -> Result<std::shared_ptr<StoreReader>> {
    StoreChoice meant = choice;
    meant.path = choice.path.empty() ? request.store : path_from(request.folder, choice.path);
    if (!is_own_store(meant.path, holding)) return open_at_rest(meant);
    if (choice.encryption.on && !holding.flags().encryption.on) {
      return Error{ErrorCode::kInvalidArgument, meant.path + ": the store lies in clear"};
    }
    EMBER_ASSIGN(
        std::unique_ptr<StoreReader> live,
        open_live_store(holding.engine().cache(), [&holding](const std::function<void()>& work) {
          return holding.call(work);
        }));
    return std::shared_ptr<StoreReader>(std::move(live));
  };
  const LiveOpener open_live = [&](const StoreChoice& choice) -> Result<LiveCache> {
    StoreChoice meant = choice;
    meant.path = choice.path.empty() ? request.store : path_from(request.folder, choice.path);
    if (!is_own_store(meant.path, holding)) return no_live_cache(meant);
    return LiveCache{
        .cache = &holding.engine().cache(),
        .call = [&holding](const std::function<void()>& work) { return holding.call(work); },
        .wait_for =
            [&](const std::function<Ticket()>& begin) {
              return wait_for(begin, streams, holding);
            }};
  };
  const auto is_open = [&holding](const std::string& conversation) {
    bool open = false;
    holding.call([&] { open = holding.keeps(conversation); });
    return open;
  };
  CommandContext context{.io = {.in = streams.in(),
                                .out = streams.out(),
                                .err = streams.err(),
                                .width = request.width,
                                .colour = request.colour,
                                .progress = request.progress,
                                .cancelled = [&streams] { return streams.cancelled(); }},
                         .open_reader = opener,
                         .open_live = open_live,
                         .is_open = is_open,
                         .folder = request.folder};
  return run_inspection(request.arguments, context);
}

}  // namespace

Result<std::optional<int>> hand_over(const std::vector<std::string>& words,
                                     const std::string& store) {
  EMBER_ASSIGN(const std::unique_ptr<HolderClient> client, HolderClient::connect(store));
  if (client == nullptr) return std::optional<int>();
  std::cout.flush();
  EMBER_ASSIGN(const int code, client->run(request_of(words, store), ClientStreams()));
  return std::optional<int>(code);
}

Result<int> chat_or_attach(const ChatOptions& options, const std::vector<std::string>& words) {
  const std::string store =
      options.engine.store.empty() ? default_store_path() : options.engine.store;
  const int64_t deadline_us = system_clock().now_us() + kAnswerPatienceUs;
  while (true) {
    const Result<std::optional<int>> handed = hand_over(words, store);
    if (handed.ok() && *handed) return **handed;
    const Result<int> ended = handed.ok() ? run_chat(options, run_foreign_command, std::cout)
                                          : Result<int>(handed.error());
    const bool held = !ended.ok() && ended.error().code == ErrorCode::kBusy;
    if (!held || system_clock().now_us() >= deadline_us) return ended;
    ::usleep(kAnswerPauseUs);
  }
}

int run_foreign_command(const HolderRequest& request, HolderStreams& streams, Holding& holding) {
  const bool chat = !request.arguments.empty() && request.arguments.front() == "chat";
  return chat ? chat_of_other(request, streams, holding)
              : inspection_of_other(request, streams, holding);
}

}  // namespace ember
