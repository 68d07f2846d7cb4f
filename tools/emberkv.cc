// emberkv: the one program. Its flags are defined here; what a command does is in tools/commands.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <exception>
#include <functional>
#include <iostream>
#include <string>

#include "tools/commands/chat.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/forget.h"
#include "tools/commands/generate.h"
#include "tools/commands/ls.h"
#include "tools/commands/stat.h"
#include "tools/commands/tokenize.h"
#include "tools/commands/upgrade.h"
#include "tools/commands/verify.h"
#include "tools/model_flags.h"
#include "tools/store_flags.h"

namespace ember {
namespace {

constexpr const char* kVersion = "0.1.0";

int exit_code(const Result<int>& result) {
  if (result.ok()) return *result;
  print_error(result.error().message);
  return kExitFailed;
}

CLI::Validator one_or_more() {
  return {[](std::string& text) {
            const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
            const bool zero = text.find_first_not_of('0') == std::string::npos;
            if (digits && !zero) return std::string();
            return "found '" + text + "', expected a whole number, 1 or more";
          },
          "NUMBER"};
}

// CLI::Range takes what compares with nothing, such as "nan".
CLI::Validator temperature() {
  return {[](std::string& text) {
            double value = -1;
            const char* end = text.data() + text.size();
            const bool number = std::from_chars(text.data(), end, value).ptr == end;
            if (number && value >= 0 && value <= 100) return std::string();
            return "found '" + text + "', expected a number from 0 to 100";
          },
          "0 - 100"};
}

void add_restore(CLI::App& app, RestorePolicy& target) {
  app.add_option_function<std::string>(
         "--restore",
         [&target](const std::string& text) {
           target = text == "always" ? RestorePolicy::kAlways : RestorePolicy::kByCost;
         },
         "Which known tokens are restored: cost (those that save time, by what was measured) or "
         "always (default: cost)")
      ->check(CLI::IsMember({"cost", "always"}));
}

void add_engine_flags(CLI::App& app, EngineFlags& flags) {
  app.add_option("--model,--ckpt-path", flags.model, "Folder of the model, in Hugging Face's form")
      ->required()
      ->type_name("DIR");
  add_store(app, flags.store, flags.encryption);
  add_size(app, "--ram-bytes", flags.ram_bytes,
           "RAM for the cache, weights not counted (default: a quarter of the machine's)");
  add_size(app, "--disk-bytes", flags.disk_bytes,
           "Most bytes of the store (default: the smaller of 20 GiB and half of the free space)");
  app.add_option("--context-tokens", flags.context_tokens,
                 "Most tokens of prompt and answer (default: the model's, or what the RAM holds)")
      ->check(one_or_more());
  app.add_option("--chunk-tokens", flags.chunk_tokens, "Prompt tokens in one step")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  app.add_option("--layers-per-group", flags.layers_per_group,
                 "Layers stored together (default: about 512 KiB of them)")
      ->check(one_or_more());
  app.add_option("--workers", flags.workers, "Threads that compute (default: one for each core)")
      ->check(CLI::Range(1, 1024));
  add_restore(app, flags.restore);
  app.add_option("--template", flags.template_name,
                 "Chat template, as deepseek-v3 (default: found by comparing the model's)")
      ->type_name("NAME");
  app.add_flag_callback("--thinking", [&flags] { flags.thinking = true; },
                        "Answers begin with reasoning, where the template leaves that open");
  app.add_flag_callback("--no-thinking", [&flags] { flags.thinking = false; },
                        "Answers begin without reasoning");
  add_attention_mode(app, flags.attention);
  app.add_option("--trace", flags.trace_file,
                 "Write what the engine did, and when, to this file, for ui.perfetto.dev")
      ->type_name("FILE");
  add_weight_form(app, flags.weights);
  add_cache_dtype(app, flags.cache_dtype);
  add_config(app, flags.config);
  add_store_settings(app, flags.settings);
}

// Both commands that answer draw in the same way.
template <typename Options>
void add_sampling_flags(CLI::App& app, Options& options) {
  app.add_option("--max-tokens,--max-new-tokens", options.max_tokens, "Most tokens of an answer")
      ->capture_default_str()
      ->check(one_or_more());
  app.add_option("--temperature", options.temperature, "0 takes the likeliest token")
      ->capture_default_str()
      ->check(temperature());
  app.add_option("--seed", options.seed, "Seed of the draws; used when the temperature is not 0")
      ->capture_default_str();
}

void add_json(CLI::App& app, bool& json, const std::string& help) {
  app.add_flag("--json", json, help);
}

void define_chat(CLI::App& root, ChatOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand("chat", "Talk with a model; each line of input is a turn");
  add_engine_flags(*app, options.engine);
  add_sampling_flags(*app, options);
  CLI::Option* resume =
      app->add_option("--resume", options.resume, "Go on with a conversation: its id, or last");
  resume->type_name("ID");
  CLI::Option* system = app->add_option("--system", options.system, "System prompt");
  CLI::Option* system_file =
      app->add_option("--system-file", options.system_file, "File with the system prompt");
  system->type_name("TEXT")->excludes(resume);
  system_file->type_name("FILE")->excludes(resume)->excludes(system);
  add_json(*app, options.json, "Print one JSON object a line: ready, delta, turn, error");
  app->callback([&] {
    action = [&options] {
      options.interactive = isatty(STDIN_FILENO) == 1;
      return exit_code(run_chat(options, std::cin, std::cout));
    };
  });
}

void define_generate(CLI::App& root, GenerateOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand("generate", "Answer one prompt, a file of them, or a user");
  add_engine_flags(*app, options.engine);
  add_sampling_flags(*app, options);
  CLI::Option_group* source = app->add_option_group("Prompt", "Exactly one of these");
  source->add_option("--messages-file", options.messages_file, "JSON file of messages")
      ->type_name("FILE");
  source->add_option("--prompt", options.prompt, "Raw text")->type_name("TEXT");
  source->add_option("--prompt-file", options.prompt_file, "File of raw text")->type_name("FILE");
  source->add_option("--input-file", options.input_file, "File with a prompt on each line")
      ->type_name("FILE");
  source->add_flag("--interactive", options.interactive,
                   "Read prompts line by line as a conversation; /clear begins anew, /exit ends");
  source->require_option(1);
  app->add_flag("--chat", options.chat, "Wrap the raw text as a user's message");
  app->add_flag("!--no-cache", options.engine.use_store, "Neither read nor write the store");
  add_json(*app, options.json, "Print one JSON object instead of the text");
  app->callback([&] {
    action = [&options] { return exit_code(run_generate(options, std::cin, std::cout)); };
  });
}

void define_stat(CLI::App& root, StatOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand("stat", "Show what a store holds and how well it is");
  add_store(*app, options.store, options.encryption);
  add_json(*app, options.json, "Print one JSON object");
  app->callback([&] { action = [&options] { return exit_code(run_stat(options, std::cout)); }; });
}

void define_ls(CLI::App& root, LsOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand("ls", "List the blocks of a store, parents before children");
  add_store(*app, options.store, options.encryption);
  app->add_option("--limit", options.limit, "Most lines; 0: all")->capture_default_str();
  app->add_flag("--conversations", options.conversations, "List conversations instead");
  add_json(*app, options.json, "Print one JSON object a line");
  app->callback([&] { action = [&options] { return exit_code(run_ls(options, std::cout)); }; });
}

void define_verify(CLI::App& root, VerifyOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand("verify", "Read and prove every byte of a store");
  add_store(*app, options.store, options.encryption);
  add_json(*app, options.json, "Print one JSON object");
  app->callback([&] { action = [&options] { return exit_code(run_verify(options, std::cout)); }; });
}

void define_upgrade(CLI::App& root, UpgradeOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand("upgrade", "Bring a store to the version of this program");
  add_store(*app, options.store);
  app->add_flag("--dry-run", options.dry_run, "Say what would be done, and change nothing");
  add_json(*app, options.json, "Print one JSON object");
  app->callback(
      [&] { action = [&options] { return exit_code(run_upgrade(options, std::cout)); }; });
}

void define_forget(CLI::App& root, ForgetOptions& options, Action& action) {
  CLI::App* app =
      root.add_subcommand("forget", "Make what a scope left in a store unreadable, for ever");
  CLI::Option_group* whose = app->add_option_group("Scope", "Exactly one of these");
  whose->add_option("--scope", options.request.scope, "Whose blocks, tails and conversations")
      ->type_name("NAME");
  whose->add_flag("--all", options.request.all, "Those of every scope");
  whose->require_option(1);
  app->add_flag("--now", options.request.now, "Also remove the bytes before the command ends");
  app->add_flag("--dry-run", options.request.dry_run, "Only say what would be forgotten");
  add_store(*app, options.store, options.encryption);
  add_size(*app, "--disk-bytes", options.disk_bytes,
           "Most bytes of the store, as in use (default: as for generate)");
  add_json(*app, options.json, "Print one JSON object");
  app->callback([&] { action = [&options] { return exit_code(run_forget(options, std::cout)); }; });
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

// The number of a closed stream would go to the next file that is opened, and our output into it.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    // Opened for reading, a closed output stays one that cannot be written.
    static_cast<void>(::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY));
  }
}

int run(int argc, char** argv) {
  CLI::App root("EmberKV: a model's latent cache that outlives its process", "emberkv");
  root.set_version_flag("--version", kVersion);
  root.require_subcommand(1);
  ChatOptions chat;
  GenerateOptions generate;
  StatOptions stat;
  LsOptions ls;
  VerifyOptions verify;
  UpgradeOptions upgrade;
  ForgetOptions forget;
  ModelCommands model;
  TokenizeOptions tokenize;
  Action action;
  define_chat(root, chat, action);
  define_generate(root, generate, action);
  define_stat(root, stat, action);
  define_ls(root, ls, action);
  define_verify(root, verify, action);
  define_upgrade(root, upgrade, action);
  define_forget(root, forget, action);
  define_model_commands(root, model, action);
  define_tokenize(root, tokenize, action);
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return root.exit(error);
    print_error(std::string(error.what()) + " (emberkv --help, emberkv COMMAND --help)");
    return kExitUsage;
  }
  const int code = action();
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
