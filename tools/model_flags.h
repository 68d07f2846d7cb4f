// Model flags: the commands that need a model or its config and no store, and flags that commands
// with a model share.
//
// Journey    command line -> [model_flags] -> options of the commands
// Invariant  a flag that is not given leaves its target as it is: the default
// Threads    main
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

#include "engine/model/attention_mode.h"
#include "tools/commands/model/convert.h"
#include "tools/commands/model/logits.h"
#include "tools/commands/model/perplexity.h"
#include "tools/commands/model/plan.h"

namespace ember {

// What to run once the whole command line was understood; returns the exit code.
using Action = std::function<int()>;

// kExitOk, or the error on standard error and kExitFailed.
int exit_code(const Status& status);

void add_attention(CLI::App& app, AttentionForm& target);           // --attention
// --attention, which has auto too, and --deterministic.
void add_attention_mode(CLI::App& app, AttentionMode& target);
void add_weight_form(CLI::App& app, WeightForm& target);            // --weights
void add_cache_dtype(CLI::App& app, std::optional<DType>& target);  // --cache-dtype
void add_config(CLI::App& app, std::string& target);                // --config

struct ModelCommands {
  LogitsOptions logits;
  PerplexityOptions perplexity;
  PlanOptions plan;
  ConvertOptions convert;
};
void define_model_commands(CLI::App& root, ModelCommands& options, Action& action);

}  // namespace ember
