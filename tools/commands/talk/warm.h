// warm: brings prompts into the cache before anyone asks them: the system text that many share,
// files, requests, a conversation, what is stored.
//
// Journey    warm_prompts -> [warm] -> warmer -> scheduler, block_cache
// Invariant  without a holder it opens the model and computes; in a holder it runs behind every
//            request; a prompt that fails is told, and the others go on
// Threads    run_warm: main (it is the engine thread); run_warm_of_other: any other
#pragma once

#include "base/result.h"
#include "service/holder/holder_frames.h"
#include "tools/commands/command_context.h"
#include "tools/commands/talk/engine_flags.h"
#include "tools/commands/talk/holding.h"
#include "tools/commands/talk/warm_prompts.h"

namespace ember {

struct WarmOptions {
  EngineFlags engine;  // with a holder its own hold; a model that is named has to be the same
  WarmSources sources;
  bool dry_run = false;
  bool json = false;  // an object for each prompt
};

// Answers `foreign` commands meanwhile. Exit code 1 when a prompt failed. Errors: those of opening
// the engine; kInvalidArgument without a model.
Result<int> run_warm(const WarmOptions& options, const ForeignCommand& foreign,
                     CommandContext& context);

// In the process that holds the store. Paths are as the other one gave them.
Result<int> run_warm_of_other(WarmOptions options, CommandContext& context, Holding& holding);

}  // namespace ember
