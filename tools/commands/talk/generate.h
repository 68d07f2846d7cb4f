// generate: one prompt, one answer, and what the cache did for it; or many prompts, or a dialogue,
// as DeepSeek's generate.py has them.
//
// Journey    prompt text -> [generate] -> request -> answer on standard output
// Invariant  returns only after what was computed is durable; with --json standard output is one
//            object, or one a line
// Threads    main (it is the engine thread)
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>

#include "base/result.h"
#include "tools/commands/prompt_source.h"
#include "tools/commands/talk/engine_flags.h"
#include "tools/commands/talk/holding.h"

namespace ember {

struct GenerateOptions {
  EngineFlags engine;
  // Exactly one of the three.
  PromptFlags prompt;
  std::optional<std::string> input_file;  // a prompt a line, each a user's message
  bool interactive = false;               // prompts from `in`, as one conversation
  uint32_t max_tokens = 256;
  float temperature = 0;
  uint64_t seed = 1;
  bool json = false;
};

// Answers `foreign` commands meanwhile. Errors: those of the files, of the engine and of the
// request.
Status run_generate(const GenerateOptions& options, const ForeignCommand& foreign,
                    std::istream& in, std::ostream& out);

}  // namespace ember
