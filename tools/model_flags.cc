// Model flags: logits, perplexity, plan and convert, flag by flag.
#include "tools/model_flags.h"

#include <iostream>

#include "tools/commands/exit_code.h"
#include "tools/commands/messages.h"
#include "tools/store_flags.h"

namespace ember {
namespace {

void add_precision(CLI::App& app, DType& target) {
  app.add_option_function<std::string>(
         "--precision",
         [&target](const std::string& text) {
           target = text == "fp32" ? DType::kF32 : DType::kBf16;
         },
         "Of activations and cached rows (default: bf16)")
      ->check(CLI::IsMember({"bf16", "fp32"}));
}

void add_local_model(CLI::App& app, LocalModelOptions& model) {
  app.add_option("--model", model.model, "Folder of the model")->required()->type_name("DIR");
  add_config(app, model.config_path);
  add_attention(app, model.attention);
  add_precision(app, model.precision);
  add_weight_form(app, model.weights);
  add_cache_dtype(app, model.cache_dtype);
  app.add_option("--workers", model.workers, "Threads that compute (default: one for each core)")
      ->check(CLI::Range(1, 1024));
}

void define_logits(CLI::App& root, LogitsOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand("logits", "Write the logits of given token ids as .npy");
  add_local_model(*app, options.model);
  app->add_option("--ids-file", options.ids_file, "Token ids, separated by white space")
      ->required()
      ->type_name("FILE");
  app->add_option("--out", options.out_path, "Where to write float32 [tokens, vocabulary]")
      ->required()
      ->type_name("FILE");
  app->callback([&] { action = [&options] { return exit_code(run_logits(options)); }; });
}

void define_perplexity(CLI::App& root, PerplexityOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand("perplexity", "Measure how well a model foresees a text");
  add_local_model(*app, options.model);
  app->add_option("--text-file", options.text_file, "The text")->required()->type_name("FILE");
  app->add_option("--context-tokens", options.context_tokens,
                  "Tokens of a window, each read from its start (default: the model's positions)")
      ->check(CLI::Range(2, 1 << 30));
  app->add_flag("--json", options.json, "Print one JSON object");
  app->callback(
      [&] { action = [&options] { return exit_code(run_perplexity(options, std::cout)); }; });
}

void define_plan(CLI::App& root, PlanOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand("plan", "Say what a model would need, from its config alone");
  app->add_option("--config", options.config,
                  "config.json, DeepSeek's inference JSON, or a folder with a config.json")
      ->required()
      ->type_name("FILE");
  add_size(*app, "--memory", options.memory_bytes,
           "Memory to fit into, in bytes or as 24GiB (default: this machine's)");
  app->add_flag("--json", options.json, "Print one JSON object; sizes are bytes");
  app->footer(
      "Examples:\n"
      "  emberkv plan --config configs/models/config_16B.json --memory 24GiB\n"
      "  emberkv plan --config models/demo --json");
  app->callback([&] { action = [&options] { return exit_code(run_plan(options, std::cout)); }; });
}

void define_convert(CLI::App& root, ConvertOptions& options, Action& action) {
  CLI::App* app = root.add_subcommand("convert", "Cast a checkpoint from fp8 to bf16, or back");
  CastOptions& cast = options.cast;
  app->add_option("--from", cast.from, "Folder of the checkpoint")->required()->type_name("DIR");
  app->add_option("--to", cast.to, "New folder; it must not exist")->required()->type_name("DIR");
  app->add_option_function<std::string>(
         "--dtype",
         [&cast](const std::string& text) {
           cast.dtype = text == "fp8" ? DType::kF8E4M3 : DType::kBf16;
         },
         "bf16: widen fp8 weights and drop their scales; fp8: linear layers in 128 x 128 blocks")
      ->required()
      ->check(CLI::IsMember({"bf16", "fp8"}));
  app->add_option_function<std::string>(
         "--scale-format",
         [&cast](const std::string& text) { cast.power_of_two_scales = text == "ue8m0"; },
         "Of fp8: scales as they come out, or rounded up to powers of two (default: raw)")
      ->check(CLI::IsMember({"raw", "ue8m0"}));
  app->add_flag("--json", options.json, "Print one JSON object");
  app->footer("Example:\n  emberkv convert --from DeepSeek-V3 --to DeepSeek-V3-bf16 --dtype bf16");
  app->callback(
      [&] { action = [&options] { return exit_code(run_convert(options, std::cout)); }; });
}

}  // namespace

int exit_code(const Status& status) {
  if (status.ok()) return kExitOk;
  print_error(status.error().message);
  return kExitFailed;
}

void add_attention(CLI::App& app, AttentionForm& target) {
  app.add_option_function<std::string>(
         "--attention",
         [&target](const std::string& text) {
           target = text == "naive" ? AttentionForm::kNaive : AttentionForm::kAbsorb;
         },
         "Form of latent attention (default: absorb)")
      ->check(CLI::IsMember({"absorb", "naive"}));
}

void add_attention_mode(CLI::App& app, AttentionMode& target) {
  CLI::Option* form = app.add_option_function<std::string>(
      "--attention",
      [&target](const std::string& text) {
        target = text == "naive"    ? AttentionMode::kNaive
                 : text == "absorb" ? AttentionMode::kAbsorb
                                    : AttentionMode::kAuto;
      },
      "Form of latent attention: one of the two for all tokens, or auto, which takes the naive one "
      "for long prompts (default: auto)");
  form->check(CLI::IsMember({"auto", "absorb", "naive"}));
  app.add_flag_callback(
         "--deterministic", [&target] { target = AttentionMode::kAbsorb; },
         "The same bits whatever came from where, however prompts were cut and requests mixed")
      ->excludes(form);
}

void add_weight_form(CLI::App& app, WeightForm& target) {
  app.add_option_function<std::string>(
         "--weights",
         [&target](const std::string& text) {
           target = text == "int8" ? WeightForm::kInt8 : WeightForm::kStored;
         },
         "Linear layers in memory: as stored, or int8 by row, made at load (default: stored)")
      ->check(CLI::IsMember({"stored", "int8"}));
}

void add_cache_dtype(CLI::App& app, std::optional<DType>& target) {
  app.add_option_function<std::string>(
         "--cache-dtype",
         [&target](const std::string& text) {
           target = text == "fp8" ? std::optional(DType::kF8E4M3) : std::nullopt;
         },
         "Cached rows in bf16 or in fp8, apart from each other in a store (default: bf16)")
      ->check(CLI::IsMember({"bf16", "fp8"}));
}

void add_config(CLI::App& app, std::string& target) {
  app.add_option("--config", target,
                 "config.json or DeepSeek's inference JSON (default: the model's config.json)")
      ->type_name("FILE");
}

void define_model_commands(CLI::App& root, ModelCommands& options, Action& action) {
  define_logits(root, options.logits, action);
  define_perplexity(root, options.perplexity, action);
  define_plan(root, options.plan, action);
  define_convert(root, options.convert, action);
}

}  // namespace ember
