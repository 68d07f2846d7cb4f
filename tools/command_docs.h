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
  std::vector<std::string> names;  // "-h", "--help"; of a positional its name alone
  std::string value;               // "DIR", "{bash,zsh}"; empty: a flag
  std::vector<std::string> choices;  // all words that it takes; empty: others too
  std::string range;                 // "1 to 1024"; empty: any
  std::string standard;              // its default; empty: none, or `help` tells it
  std::string needs;                 // other flags
  std::string excludes;
  std::string help;
  std::string group;  // empty: of no group
  bool positional = false;
  bool required = false;

  // " (required; 1 to 1024; default: 8)", to stand behind `help`; empty: there are none.
  std::string remarks() const;
};

OptionDoc option_doc(const CLI::Option& option, const std::string& group);

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
