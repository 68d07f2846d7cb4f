// chat: a conversation, line by line, that a kill cannot lose.
//
// Journey    line -> [chat] -> chat_session -> answer on standard output
// Invariant  the JSON line "turn" with durable true is printed only after the turn is durable
// Threads    main (it is the engine thread)
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>

#include "base/result.h"
#include "tools/commands/engine_flags.h"

namespace ember {

struct ChatOptions {
  EngineFlags engine;
  std::optional<std::string> resume;  // a conversation's id, or "last"
  std::optional<std::string> system;
  std::optional<std::string> system_file;
  uint32_t max_tokens = 256;  // of one answer
  float temperature = 0;
  uint64_t seed = 1;
  bool json = false;
  bool interactive = false;  // standard input is a terminal: show a prompt sign
};

// Each line of `in` is a turn; "/exit" or the end of input ends the chat. Returns the exit code: a
// turn that could not be answered is reported, the chat goes on, and the code is 1 unless
// interactive. Errors: those that keep the chat from beginning.
Result<int> run_chat(const ChatOptions& options, std::istream& in, std::ostream& out);

}  // namespace ember
