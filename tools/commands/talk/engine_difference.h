// Engine difference: whether a command of another process could be answered by this one's engine.
//
// Journey    command line of another -> [engine_difference] -> talk, or a refusal in one line
// Invariant  what changes an answer is compared; what only the process has (RAM, threads) is not
// Threads    any; reads the file system for paths
#pragma once

#include <string>

#include "base/result.h"
#include "tools/commands/talk/engine_flags.h"

namespace ember {

// `asked`: as a process in `folder` gave them. Errors: kUnsupported, naming what differs and how.
Status check_same_engine(const EngineFlags& own, const EngineFlags& asked,
                         const std::string& folder);

}  // namespace ember
