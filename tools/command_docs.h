// Command docs: the manual and the shells' completions, from the flags as they are defined.
//
// Journey    CLI::App -> [command_docs] -> man page, completions of bash, zsh and fish
// Invariant  one source with --help: what is written here is read off the same definitions
// Threads    any; pure
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace ember {

struct OptionDoc {
  std::vector<std::string> names;  // "--limit", "-h"; of a positional its name alone
  std::string value;               // "DIR"; empty: a flag
  std::vector<std::string> choices;  // all words that it takes; empty: others too
  std::string help;
  std::string group;  // empty: of no group
  bool positional = false;
  bool required = false;
};

struct CommandDoc {
  std::vector<std::string> words;  // "conversations", "list"; none: the program
  std::string help;
  std::vector<OptionDoc> options;
  std::vector<std::string> subcommands;
  std::string notes;  // lines: what its signs mean, examples
};

// The program first, then each command right before those below it.
std::vector<CommandDoc> command_docs(const CLI::App& root);

// In man(7)'s form.
std::string manual_page(const std::vector<CommandDoc>& docs, const std::string& version);

// For `source`, or a file of the shell's own folder. `shell`: bash, zsh or fish.
std::string completion_script(const std::vector<CommandDoc>& docs, const std::string& shell);

}  // namespace ember
