// Prompt flags: where a prompt comes from, the same for every command that takes one.
//
// Journey    command line -> [prompt_flags] -> prompt_source
// Invariant  a flag that is not given leaves its target as it is: none
// Threads    any; each its own App
#pragma once

#include <CLI/CLI.hpp>
#include <array>

#include "tools/commands/prompt_source.h"

namespace ember {

// --system and --system-file, of which one may be given; returned, for what excludes both.
std::array<CLI::Option*, 2> add_system(CLI::App& app, SystemFlags& target);

// --prompt, --prompt-file and --messages-file, with --chat and the two above. Returns the group of
// sources, for more of them; the caller says how many are wanted.
CLI::Option_group* add_prompt(CLI::App& app, PromptFlags& target);

}  // namespace ember
