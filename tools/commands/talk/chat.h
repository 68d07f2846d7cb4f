// chat: a conversation, line by line, that a kill cannot lose; and the conversations of other
// processes that find the store held by this one.
//
// Journey    line -> [chat] -> talk -> chat_session -> answer on standard output
// Invariant  ends when its own input has ended and the last of the others has
// Threads    main (it is the engine thread); its own talk has one, each of the others too
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <ostream>
#include <string>

#include "base/result.h"
#include "service/holder/holder_frames.h"
#include "service/holder/holder_streams.h"
#include "tools/commands/prompt_source.h"
#include "tools/commands/talk/engine_flags.h"
#include "tools/commands/talk/holding.h"

namespace ember {

struct ChatOptions {
  EngineFlags engine;
  std::optional<std::string> resume;  // a conversation's id, or "last"
  SystemFlags system;
  uint32_t max_tokens = 256;  // of one answer
  float temperature = 0;
  uint64_t seed = 1;
  bool json = false;
  bool interactive = false;  // standard input is a terminal: show a prompt sign
};

// Talks over standard input and output, and answers `foreign` commands meanwhile. Returns the exit
// code of its own talk (see talk.h). Errors: those that keep the chat from beginning.
Result<int> run_chat(const ChatOptions& options, const ForeignCommand& foreign, std::ostream& out);

// A chat of another process, in the one that holds its store. Paths in `options` are as that one
// gave them. Returns the exit code.
int run_chat_of_other(ChatOptions options, const HolderRequest& request, HolderStreams& streams,
                      Holding& holding);

}  // namespace ember
