// The terminal as it is, and opening stores that nobody holds.
#include "tools/local_context.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>

#include "tools/commands/messages.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

constexpr size_t kPipeWidth = 100;
constexpr size_t kLeastWidth = 40;

size_t terminal_width() {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kPipeWidth;
  return std::max<size_t>(size.ws_col, kLeastWidth);
}

bool shows_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool unwanted = (no_colour != nullptr && *no_colour != '\0') ||
                        (term != nullptr && std::string(term) == "dumb");
  return !unwanted && ::isatty(STDOUT_FILENO) == 1;
}

}  // namespace

Error with_next_step(const Error& error) {
  // RocksDB takes a file that is not there for one that the drive does not give.
  const bool missing = error.message.find("No such file") != std::string::npos ||
                       error.message.find("does not exist") != std::string::npos;
  if (error.code != ErrorCode::kCorruption && !missing) return error;
  return {error.code, error.message + "; " + kRepairIsNext};
}

Result<std::shared_ptr<StoreReader>> open_at_rest(const StoreChoice& choice) {
  const std::string path = choice.resolved();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return Error{ErrorCode::kInvalidArgument,
                 path + ": there is no store yet; chat and generate make one there (--store names "
                        "another place)"};
  }
  Result<std::unique_ptr<StoreReader>> opened = open_resting_store(path, choice.encryption);
  if (!opened.ok()) return with_next_step(opened.error());
  const std::unique_ptr<StoreReader>& reader = *opened;
  const StoreFacts facts = reader->facts();
  if (facts.holder_pid != 0 && !choice.read_only) {
    return Error{ErrorCode::kBusy,
                 path + ": process " + std::to_string(facts.holder_pid) +
                     " holds it and does not answer; --read-only shows it as of its last flush, " +
                     time_text(facts.as_of_unix_us)};
  }
  return std::shared_ptr<StoreReader>(std::move(*opened));
}

Result<std::shared_ptr<StoreEditor>> edit_at_rest(const StoreChoice& choice, uint64_t disk_bytes) {
  const std::string path = choice.resolved();
  if (choice.read_only) {
    return Error{ErrorCode::kInvalidArgument, path + ": --read-only changes nothing"};
  }
  if (disk_bytes == 0) {
    EMBER_ASSIGN(disk_bytes, limit_for_changes(path, choice.encryption));
  }
  Result<std::unique_ptr<StoreEditor>> opened =
      open_resting_editor(path, choice.encryption, disk_bytes);
  if (!opened.ok()) return with_next_step(opened.error());
  return std::shared_ptr<StoreEditor>(std::move(*opened));
}

Result<LiveCache> no_live_cache(const StoreChoice& choice) {
  return Error{ErrorCode::kInvalidArgument,
               choice.resolved() +
                   ": no process that holds it answers; this command needs one, such as a chat"};
}

CommandContext local_context() {
  return {.io = {.in = std::cin,
                 .out = std::cout,
                 .err = std::cerr,
                 .width = terminal_width(),
                 .on_terminal = ::isatty(STDOUT_FILENO) == 1,
                 .colour = shows_colour(),
                 .progress = ::isatty(STDERR_FILENO) == 1,
                 .interactive = ::isatty(STDIN_FILENO) == 1},
          .open_reader = open_at_rest,
          .open_live = no_live_cache,
          .open_editor = edit_at_rest};
}

}  // namespace ember
