// Command notes: what stands below a command's flags in its help and in the manual: examples, and
// what its signs mean.
//
// Journey    the root of all commands -> [command_notes] -> --help, command_docs
// Invariant  every command that is listed has at least one example
// Threads    main
#pragma once

#include <CLI/CLI.hpp>

namespace ember {

// To be called when all commands are there. Keeps what a command already says below its flags.
void add_command_notes(CLI::App& root);

}  // namespace ember
