// Inspection commands: their flags, and running one of them from its words: on the command line,
// and inside the process that holds the store.
//
// Journey    argv -> [inspection_commands] -> the command, with its context
// Owns       the flags of every command that needs a store and no model
// Invariant  the same words mean the same everywhere
// Threads    any, one command at a time for each InspectionCommands
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/commands/command_context.h"

namespace ember {

struct InspectionOptions;

class InspectionCommands {
 public:
  // Adds the subcommands to `root`; once parsed, run() does the one that was named.
  explicit InspectionCommands(CLI::App& root);
  ~InspectionCommands();

  // Whether one of these commands was named.
  bool chosen() const { return static_cast<bool>(action_); }
  // The store that it was given, for who looks for its holder first.
  const StoreChoice& store() const { return *store_; }
  // Whether it works in the process that it was called in, whoever holds the store.
  bool runs_here() const { return runs_here_; }
  // Whether it could look at a store that is held by a process which does not answer.
  bool takes_read_only() const { return takes_read_only_; }
  // Paths among its flags are meant in this folder.
  void take_paths_from(const std::string& folder);
  // Errors: the command's.
  Result<int> run(CommandContext& context) { return action_(context); }

 private:
  using Action = std::function<Result<int>(CommandContext&)>;
  // One that changes something: no --read-only.
  CLI::App* add_change(CLI::App& parent, const std::string& name, const std::string& help,
                       StoreChoice& store, bool& json, const std::string& json_help);
  CLI::App* add(CLI::App& parent, const std::string& name, const std::string& help,
                StoreChoice& store, bool& json, const std::string& json_help);
  template <typename Options>
  void on_parse(CLI::App* app, Options& options,
                Result<int> (*execute)(const Options&, CommandContext&), bool here = false);
  void define_looks(CLI::App& root);
  void define_lists(CLI::App& root);
  void define_explain(CLI::App& root);
  void define_holders(CLI::App& root);
  void define_conversations(CLI::App& root);
  void define_transfers(CLI::App& root);
  void define_conversation_edits(CLI::App& group);
  void define_changes(CLI::App& root);
  void define_mending(CLI::App& root);
  void define_simulate(CLI::App& root);
  void define_top(CLI::App& root);

  std::unique_ptr<InspectionOptions> options_;
  Action action_;
  StoreChoice* store_ = nullptr;
  bool runs_here_ = false;
  bool takes_read_only_ = false;
};

// Parses `words` (a command and its flags, without the program's name) and runs it; what is wrong
// is said on context.io.err. Returns the exit code.
int run_inspection(const std::vector<std::string>& words, CommandContext& context);

}  // namespace ember
