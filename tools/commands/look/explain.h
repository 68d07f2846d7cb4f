// explain: what of a prompt would hit, from which tier, and why the rest would not.
//
// Journey    prompt_source -> tokens -> [prompt_match] -> [explain] -> text or one JSON object
// Invariant  reads only; a reason names the token, the block or the field that differs
// Threads    the command's
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "engine/model/attention_mode.h"
#include "tools/commands/command_context.h"
#include "tools/commands/prompt_source.h"

namespace ember {

struct ExplainOptions {
  StoreChoice store;
  PromptFlags prompt;
  std::string conversation;  // its id or "last", in place of a prompt
  std::string name_space;    // first digits; empty: the one that knows most of the prompt
  std::string scope = "shared";
  AttentionMode attention = AttentionMode::kAuto;  // beside a holder: the holder's
  std::string tokenizer;  // a file or folder; empty: the one that the store keeps
  std::string template_name;
  std::optional<bool> thinking;
  bool json = false;
};

// Errors: those of the store, the prompt and the tokenizer; kInvalidArgument where no namespace of
// the store fits.
Result<int> run_explain(const ExplainOptions& options, CommandContext& context);

}  // namespace ember
