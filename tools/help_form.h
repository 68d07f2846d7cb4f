// Help form: what --help prints, and what is said of a command line that cannot be read.
//
// Journey    CLI11's definitions -> command_docs -> [help_form] -> --help
// Invariant  help and manual say the same of a flag; no line is wider than it was asked for, but
//            for a word that is
// Threads    main
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace ember {

// For the root and all commands that are added to it later.
void use_help_form(CLI::App& root, size_t width);

// In one line, with the help to look at.
std::string usage_error(const CLI::App& root, const CLI::ParseError& error);

}  // namespace ember
