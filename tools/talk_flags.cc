// Flags of the commands that answer, one by one.
#include "tools/talk_flags.h"

#include <charconv>

#include "tools/model_flags.h"
#include "tools/prompt_flags.h"
#include "tools/store_flags.h"

namespace ember {
namespace {

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

// Returns --model.
CLI::Option* add_engine_flags(CLI::App& app, EngineFlags& flags) {
  CLI::Option* model = app.add_option("--model,--ckpt-path", flags.model,
                                      "Folder of the model, in Hugging Face's form");
  model->type_name("DIR");
  add_store(app, flags.store, flags.encryption);
  add_size(app, "--ram-bytes", flags.ram_bytes,
           "RAM for the cache, weights not counted (default: a quarter of the machine's)");
  add_size(app, "--disk-bytes", flags.disk_bytes,
           "Most bytes of the store (default: the smaller of 20 GiB and half of the free space)");
  app.add_option("--context-tokens", flags.context_tokens,
                 "Most tokens of prompt and answer (default: the model's, or what the RAM holds)")
      ->check(whole_number(1));
  app.add_option("--chunk-tokens", flags.chunk_tokens, "Prompt tokens in one step")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  app.add_option("--layers-per-group", flags.layers_per_group,
                 "Layers stored together (default: about 512 KiB of them)")
      ->check(whole_number(1));
  app.add_option("--workers", flags.workers, "Threads that compute (default: one for each core)")
      ->check(CLI::Range(1, 1024));
  add_restore(app, flags.restore);
  app.add_option("--template", flags.template_name,
                 "Chat template, as deepseek-v3 (default: found by comparing the model's)")
      ->type_name("NAME");
  app.add_flag_callback(
      "--thinking", [&flags] { flags.thinking = true; },
      "Answers begin with reasoning, where the template leaves that open");
  app.add_flag_callback(
      "--no-thinking", [&flags] { flags.thinking = false; }, "Answers begin without reasoning");
  add_attention_mode(app, flags.attention);
  app.add_option("--trace", flags.trace_file,
                 "Write what the engine did, and when, to this file, for ui.perfetto.dev")
      ->type_name("FILE");
  add_weight_form(app, flags.weights);
  add_cache_dtype(app, flags.cache_dtype);
  add_config(app, flags.config);
  add_store_settings(app, flags.settings);
  return model;
}

void add_files(CLI::App& group, const std::string& flag, std::vector<std::string>& target,
               const std::string& help) {
  group.add_option(flag, target, help)->type_name("FILE")->expected(1)->take_all();
}

// Both commands that answer draw in the same way.
template <typename Options>
void add_sampling_flags(CLI::App& app, Options& options) {
  app.add_option("--max-tokens,--max-new-tokens", options.max_tokens, "Most tokens of an answer")
      ->capture_default_str()
      ->check(whole_number(1));
  app.add_option("--temperature", options.temperature, "0 takes the likeliest token")
      ->capture_default_str()
      ->check(temperature());
  app.add_option("--seed", options.seed, "Seed of the draws; used when the temperature is not 0")
      ->capture_default_str()
      ->check(whole_number(0));
}

}  // namespace

CLI::App* add_chat(CLI::App& root, ChatOptions& options) {
  CLI::App* app = root.add_subcommand("chat", "Talk with a model; each line of input is a turn");
  add_engine_flags(*app, options.engine)->required();
  add_sampling_flags(*app, options);
  CLI::Option* resume =
      app->add_option("--resume", options.resume, "Go on with a conversation: its id, or last");
  resume->type_name("ID");
  for (CLI::Option* option : add_system(*app, options.system)) option->excludes(resume);
  app->add_flag("--json", options.json, "Print one JSON object a line: ready, delta, turn, error");
  return app;
}

CLI::App* add_generate(CLI::App& root, GenerateOptions& options) {
  CLI::App* app = root.add_subcommand("generate", "Answer one prompt, a file of them, or a user");
  add_engine_flags(*app, options.engine)->required();
  add_sampling_flags(*app, options);
  CLI::Option_group* source = add_prompt(*app, options.prompt);
  source->add_option("--input-file", options.input_file, "File with a prompt on each line")
      ->type_name("FILE");
  source->add_flag("--interactive", options.interactive,
                   "Read prompts line by line as a conversation; /clear begins anew, /exit ends");
  source->require_option(1);
  app->add_flag("!--no-cache", options.engine.use_store, "Neither read nor write the store");
  app->add_flag("--json", options.json, "Print one JSON object instead of the text");
  return app;
}

CLI::App* add_warm(CLI::App& root, WarmOptions& options) {
  CLI::App* app = root.add_subcommand(
      "warm", "Bring prompts into the cache before anyone asks");
  WarmSources& sources = options.sources;
  add_system(*app, sources.system);
  add_files(*app, "--prompt-file", sources.prompt_files,
            "File of raw text; with --system the question after it; may be given again");
  app->add_flag("--chat", sources.chat, "Wrap raw text as a user's message");
  add_files(*app, "--messages-file", sources.messages_files,
            "JSON file of messages; may be given again");
  add_files(*app, "--requests-file", sources.request_files,
            "File of JSON lines: a chat request or {\"prompt\": text} each; may be given again");
  app->add_option("--conversation", sources.conversations,
                  "A talk of the store: its id, or last; may be given again")
      ->type_name("ID")
      ->expected(1)
      ->take_all();
  app->add_option("--prefix", sources.prefixes,
                  "A stored block and all before it, by its hash's digits: from the disk to RAM; "
                  "may be given again")
      ->type_name("HASH")
      ->expected(1)
      ->take_all();
  app->add_option("--scope", sources.scope, "For whom: shared, or a tenant's name")
      ->capture_default_str();
  app->add_flag("--dry-run", options.dry_run, "Only say what hits and what would be computed");
  app->add_flag("--json", options.json, "Print one JSON object a prompt");
  add_engine_flags(*app, options.engine);
  app->footer(
      "Where a chat holds the store, warm runs in it, behind its talks, and needs no --model.");
  app->parse_complete_callback([&sources] {
    if (sources.empty()) {
      throw CLI::ValidationError("warm", "nothing to warm was given: --system, --system-file, "
                                         "--prompt-file, --messages-file, --requests-file, "
                                         "--conversation or --prefix");
    }
  });
  return app;
}

}  // namespace ember
