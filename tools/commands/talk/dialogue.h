// Dialogue: generate --interactive, as users of DeepSeek's generate.py know it.
//
// Journey    line -> [dialogue] -> chat_session -> answer on standard output
// Invariant  the history is never computed again: a turn goes on from the cached one before it
// Threads    main (it is the engine thread, and ticks while a line is awaited)
#pragma once

#include <istream>
#include <ostream>

#include "base/result.h"
#include "tools/commands/talk/generate.h"

namespace ember {

// Reads prompts at ">>> " until /exit or the end of input; /clear begins a new conversation. A turn
// that fails is reported, and the dialogue goes on. Errors: those that keep it from beginning.
Status run_dialogue(Holding& holding, const GenerateOptions& options, std::istream& in,
                    std::ostream& out);

}  // namespace ember
