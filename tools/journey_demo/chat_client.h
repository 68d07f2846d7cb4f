// Chat client: one `emberkv chat --json` or `emberkv generate --json`, its events as plain structs.
//
// Journey    question -> [chat_client] -> emberkv -> answer, and what the cache did for it
// Owns       the child process
// Invariant  every figure is as the child reported it
// Threads    one
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/journey_demo/child_process.h"

namespace ember {

// A finished answer, as the event "turn" or the object of generate tells it.
struct AnswerEvent {
  std::string text;
  std::vector<int32_t> token_ids;
  std::string finish_reason;
  uint64_t prompt_tokens = 0;
  uint64_t device_tokens = 0;  // restored from there
  uint64_t host_tokens = 0;
  uint64_t disk_tokens = 0;
  uint64_t remote_tokens = 0;
  uint64_t computed_tokens = 0;
  uint64_t damaged_blocks = 0;
  double ttft_ms = 0;
  double decode_tokens_per_s = 0;
  bool durable = false;
  bool finished_cut_answer = false;
  std::string store_state;  // of generate only

  uint64_t restored_tokens() const {
    return device_tokens + host_tokens + disk_tokens + remote_tokens;
  }
  // Tokens whose latents exist once the answer is finished: all but one that was drawn and not run.
  uint64_t cached_tokens() const {
    const uint64_t all = prompt_tokens + token_ids.size();
    return finish_reason == "stop" ? all : all - 1;
  }
};

struct PastTurn {
  std::string user;
  std::vector<int32_t> token_ids;
  bool finished = false;
};

struct ReadyEvent {
  std::string conversation;
  bool resumed = false;
  bool cut_answer = false;
  std::vector<PastTurn> history;
  std::string store_state;
};

class ChatClient {
 public:
  // `command`: emberkv's path, then "chat", "--json" and its flags. Returns at the event "ready".
  // Errors: kIo, with what the child wrote to standard error.
  static Result<std::unique_ptr<ChatClient>> start(const std::vector<std::string>& command);

  const ReadyEvent& ready() const { return ready_; }
  // Asks and waits for the turn's end.
  Result<AnswerEvent> ask(const std::string& question);
  // The turn that the child is at: the rest of a cut answer, for instance.
  Result<AnswerEvent> read_turn();
  // Asks, reads `deltas` pieces of the answer and kills the child. True: it was cut; false: the
  // answer was finished before.
  Result<bool> ask_and_kill(const std::string& question, size_t deltas);
  void kill_now() { child_->kill_now(); }
  // "/exit", then the end. Errors: kIo unless the child ends with code 0.
  Status finish();

 private:
  explicit ChatClient(std::unique_ptr<ChildProcess> child) : child_(std::move(child)) {}
  Error failed(const std::string& what) const;

  std::unique_ptr<ChildProcess> child_;
  ReadyEvent ready_;
};

// Parsers of single lines; each names what is missing. Errors: kInvalidArgument.
Result<AnswerEvent> parse_answer(const std::string& json_line);
Result<ReadyEvent> parse_ready(const std::string& json_line);
// The value of "event", or empty when there is none.
std::string event_of(const std::string& json_line);

// Runs a command to its end. `input` goes to its standard input.
struct CommandResult {
  int exit_code = 0;
  std::string output;
  std::string errors;
};
Result<CommandResult> run_command(const std::vector<std::string>& command,
                                  const std::string& input = {},
                                  int64_t patience_us = kChildPatienceUs);

}  // namespace ember
