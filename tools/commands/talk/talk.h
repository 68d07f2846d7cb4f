// Talk: one conversation over three streams, line by line: the chat of this process, and those of
// others that run in it.
//
// Journey    line -> [talk] -> chat_session (on the engine thread) -> answer, piece by piece
// Owns       its place in the conversation; the session itself is held by Holding
// Invariant  the JSON line "turn" with durable true is printed only after the turn is durable; a
//            reader that is slow holds up its own talk alone
// Threads    any but the engine's
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <ostream>
#include <string>

#include "base/result.h"
#include "tools/commands/talk/holding.h"

namespace ember {

struct TalkOptions {
  std::optional<std::string> resume;  // a conversation's id, or "last"
  std::string system;
  uint32_t max_tokens = 256;  // of one answer
  float temperature = 0;
  uint64_t seed = 1;
  bool json = false;
  bool interactive = false;  // `in` is a terminal: show a prompt sign
};

struct TalkStreams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool progress = false;         // `err` is a terminal: bars are drawn there
  std::function<bool()> stopped;  // the talk is to end; asked while an answer comes
};

// Each line of `in` is a turn; "/exit" or the end of input ends the talk. Returns the exit code: a
// turn that could not be answered is reported, the talk goes on, and the code is 1 unless
// interactive. Errors: those that keep the talk from beginning.
Result<int> run_talk(const TalkOptions& options, const TalkStreams& streams, Holding& holding);

}  // namespace ember
