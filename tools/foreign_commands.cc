// Handing command lines over, and running those that came.
#include "tools/foreign_commands.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "service/holder/holder_client.h"
#include "store/store_directory.h"
#include "tools/commands/exit_code.h"
#include "tools/talk_flags.h"

namespace ember {
namespace {

// A holder has the store's lock a little before it answers, and a little after.
constexpr int64_t kAnswerPatienceUs = 2'000'000;
constexpr int kAnswerPauseUs = 50'000;

HolderRequest request_of(const std::vector<std::string>& words, const std::string& store) {
  HolderRequest request;
  std::error_code error;
  request.arguments = words;
  request.folder = std::filesystem::current_path(error).string();
  request.store = store;
  winsize size{};
  const bool terminal = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  if (terminal && size.ws_col > 0) request.width = size.ws_col;
  request.colour = isatty(STDOUT_FILENO) == 1;
  request.progress = isatty(STDERR_FILENO) == 1;
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
  const std::string command = request.arguments.empty() ? "" : request.arguments.front();
  if (command == "chat") return chat_of_other(request, streams, holding);
  print_error(streams.err(), "the process that holds the store (pid " +
                                 std::to_string(::getpid()) + ") does not run '" + command +
                                 "' for others");
  return kExitFailed;
}

}  // namespace ember
