// Talk flags: the commands that run a model over a store, chat, generate and warm: on this command
// line, and on one that another process handed over.
//
// Journey    command line -> [talk_flags] -> options of chat, generate and warm
// Invariant  a flag that is not given leaves its target as it is: the default
// Threads    any; each its own App
#pragma once

#include <CLI/CLI.hpp>

#include "tools/commands/talk/chat.h"
#include "tools/commands/talk/generate.h"
#include "tools/commands/talk/warm.h"

namespace ember {

// Each adds its subcommand to `root`; `options` outlive that.
CLI::App* add_chat(CLI::App& root, ChatOptions& options);
CLI::App* add_generate(CLI::App& root, GenerateOptions& options);
CLI::App* add_warm(CLI::App& root, WarmOptions& options);

}  // namespace ember
