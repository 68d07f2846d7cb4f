// emberkv: the one program. Its flags are defined here; what a command does is in tools/commands.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "tools/command_docs.h"
#include "tools/command_notes.h"
#include "tools/commands/change/upgrade.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/messages.h"
#include "tools/commands/model/tokenize.h"
#include "tools/commands/talk/chat.h"
#include "tools/commands/talk/generate.h"
#include "tools/commands/version.h"
#include "tools/foreign_commands.h"
#include "tools/help_form.h"
#include "tools/inspection_commands.h"
#include "tools/local_context.h"
#include "tools/model_flags.h"
#include "tools/store_flags.h"
#include "tools/talk_flags.h"

namespace ember {
namespace {

int exit_code(const Result<int>& result) {
  if (result.ok()) return *result;
  print_error(result.error().message);
  return kExitFailed;
}

void define_chat(CLI::App& root, ChatOptions& options, const std::vector<std::string>& words,
                 Action& action) {
  add_chat(root, options)->callback([&] {
    action = [&] {
      options.interactive = isatty(STDIN_FILENO) == 1;
      return exit_code(chat_or_attach(options, words));
    };
  });
}

void define_generate(CLI::App& root, GenerateOptions& options, Action& action) {
  add_generate(root, options)->callback([&] {
    action = [&options] {
      return exit_code(run_generate(options, run_foreign_command, std::cin, std::cout));
    };
  });
}

void define_warm(CLI::App& root, WarmOptions& options, const std::vector<std::string>& words,
                 Action& action) {
  add_warm(root, options)->callback([&] {
    action = [&] {
      CommandContext context = local_context();
      return exit_code(warm_or_attach(options, words, context));
    };
  });
}

void add_json(CLI::App& app, bool& json, const std::string& help) {
  app.add_flag("--json", json, help);
}

void define_upgrade(CLI::App& root, UpgradeOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand("upgrade", "Bring a store to the version of this program");
  add_store(*app, options.store);
  app->add_flag("--dry-run", options.dry_run, "Say what would be done, and change nothing");
  add_json(*app, options.json, "Print one JSON object");
  app->callback(
      [&] { action = [&options] { return exit_code(run_upgrade(options, std::cout)); }; });
}

void define_tokenize(CLI::App& root, TokenizeOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand(
      "tokenize", "Turn JSON lines {\"text\"} into {\"ids\"}, or with --decode the reverse");
  app->add_option("--tokenizer", options.tokenizer_path,
                  "tokenizer.json, a gzip of it, or the folder that holds one")
      ->required()
      ->type_name("PATH");
  CLI::Option* bos = app->add_flag("--bos", options.bos, "Begin with the BOS token");
  CLI::Option* decode = app->add_flag("--decode", options.decode, "Turn ids into text");
  decode->excludes(bos);
  app->add_flag("--skip-special", options.skip_special, "Leave special tokens out of the text")
      ->needs(decode);
  app->callback([&] {
    action = [&options] { return exit_code(run_tokenize(options, std::cin, std::cout)); };
  });
}

void define_help(CLI::App& root, std::string& shell, Action& action) {
  CLI::App* app = root.add_subcommand("completion", "Print a shell's completion of this program");
  app->add_option("shell", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  app->callback([&] {
    action = [&] {
      std::cout << completion_script(command_docs(root), shell);
      return kExitOk;
    };
  });
  app = root.add_subcommand("manual", "Print the manual, for man: emberkv manual | man -l -");
  app->callback([&] {
    action = [&root] {
      std::cout << manual_page(command_docs(root), kProgramVersion);
      return kExitOk;
    };
  });
}

// The number of a closed stream would go to the next file that is opened, and our output into it.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    // Opened for reading, a closed output stays one that cannot be written.
    static_cast<void>(::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY));
  }
}

// In the process that holds the store, where one answers and the command asks for it.
Result<int> inspect(InspectionCommands& inspection, const std::vector<std::string>& words) {
  if (!inspection.store().read_only && !inspection.runs_here()) {
    const Result<std::optional<int>> code = hand_over(words, inspection.store().resolved());
    if (!code.ok()) {
      const bool may_look = code.error().code == ErrorCode::kBusy && inspection.takes_read_only();
      const char* next = may_look ? "; --read-only looks at it as of its last flush" : "";
      return Error{code.error().code, code.error().message + next};
    }
    if (*code) return **code;
  }
  CommandContext context = local_context();
  context.ask = [&](const std::vector<std::string>& asked) {
    return ask_command(asked, inspection.store().resolved());
  };
  return inspection.run(context);
}

int run(int argc, char** argv) {
  CLI::App root("EmberKV: a model's latent cache that outlives its process", "emberkv");
  use_help_form(root, local_context().io.width);
  root.set_version_flag("--version", kProgramVersion);
  root.require_subcommand(1);
  ChatOptions chat;
  GenerateOptions generate;
  WarmOptions warm;
  UpgradeOptions upgrade;
  ModelCommands model;
  TokenizeOptions tokenize;
  Action action;
  const std::vector<std::string> words(argv + 1, argv + argc);
  define_chat(root, chat, words, action);
  define_generate(root, generate, action);
  define_warm(root, warm, words, action);
  InspectionCommands inspection(root);
  define_upgrade(root, upgrade, action);
  define_model_commands(root, model, action);
  define_tokenize(root, tokenize, action);
  std::string shell;
  define_help(root, shell, action);
  add_command_notes(root);
  const bool is_word = !words.empty() && !words[0].empty() && words[0][0] != '-';
  const auto is_named = [&words](const CLI::App* one) { return one->get_name() == words[0]; };
  const CLI::App& commands = root;
  if (is_word && commands.get_subcommands(is_named).empty()) {
    print_error("'" + words[0] + "' is no command (emberkv --help lists them)");
    return kExitUsage;
  }
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return root.exit(error);
    print_error(usage_error(root, error));
    return kExitUsage;
  }
  const int code = inspection.chosen() ? exit_code(inspect(inspection, words)) : action();
  if (std::cout.flush() || code != kExitOk) return code;
  print_error("standard output cannot be written");
  return kExitFailed;
}

}  // namespace
}  // namespace ember

int main(int argc, char** argv) {
  ember::hold_standard_streams();
  try {
    return ember::run(argc, argv);
  } catch (const std::exception& error) {
    ember::print_error(error.what());
    return ember::kExitFailed;
  }
}
