// Foreign commands: a command line that goes to the process that holds the store, and one that has
// come here because this process does.
//
// Journey    command line -> [foreign_commands] -> holder_client ... holder_server ->
//            [foreign_commands] -> the command
// Invariant  a command line means the same in both processes; paths are those of who typed them
// Threads    hand_over, *_or_attach: main. ask_command, run_foreign_command: any
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/commands/talk/chat.h"
#include "tools/commands/talk/holding.h"
#include "tools/commands/talk/warm.h"

namespace ember {

// Has `words` (the command line without the program's name) run by the process that holds `store`,
// with this process's standard streams; its exit code. Nothing: nobody answers there. `stopped`
// ends it there. Errors: those of HolderClient.
Result<std::optional<int>> hand_over(const std::vector<std::string>& words,
                                     const std::string& store,
                                     const std::function<bool()>& stopped = {});

// Runs `words` where `store` is held, as hand_over, or here where nobody answers; what it printed.
// Errors: as hand_over; those of the command.
Result<std::string> ask_command(const std::vector<std::string>& words, const std::string& store);

// chat, in the process that holds the store or in this one.
Result<int> chat_or_attach(const ChatOptions& options, const std::vector<std::string>& words);

// warm, likewise.
Result<int> warm_or_attach(const WarmOptions& options, const std::vector<std::string>& words,
                           CommandContext& context);

// The other end: a ForeignCommand.
int run_foreign_command(const HolderRequest& request, HolderStreams& streams, Holding& holding);

}  // namespace ember
