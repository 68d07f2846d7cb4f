// Engine difference: whether a command of another process could be answered by this one's engine.
//
// Journey    command line of another -> [engine_difference] -> talk, or a refusal in one line
// Invariant  what changes an answer is compared; what only the process has (RAM, threads) is not
// Threads    any; reads the file system for paths
#pragma once

#include <string>

#include "base/result.h"
#include "tools/commands/engine_flags.h"

namespace ember {

// `path` as it is meant in `folder`.
std::string path_from(const std::string& folder, const std::string& path);

// `asked`: as a process in `folder` gave them. Errors: kUnsupported, naming what differs and how.
Status check_same_engine(const EngineFlags& own, const EngineFlags& asked,
                         const std::string& folder);

}  // namespace ember
