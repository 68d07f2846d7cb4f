// Report: what generate and chat print with --json, field by field.
//
// Journey    outcome -> [report] -> one JSON object a line on standard output
// Invariant  field names and units are public; text that is not UTF-8 is repaired, never refused
// Threads    any; pure
// Not here   reports on a store at rest (tools/commands/look/stat.h, ls.h, verify.h)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/runtime/request.h"
#include "store/block_cache.h"
#include "store/conversations.h"

namespace ember {

struct GenerateReport {
  Outcome outcome;
  std::string text;
  int64_t before_us = 0;  // from model and store open to the request: reading and tokenising
  int64_t load_us = 0;
  StoreHealth health;
};
// Tokens a second after the first one; 0 when nothing followed it.
double decode_tokens_per_s(const Outcome& outcome);
// {"text", "token_ids", "finish_reason", "prompt_tokens", "restored_tokens", "computed_tokens",
// "skipped_tokens", "ttft_ms", "ttft_parts_ms", "predicted_ms", "load_ms",
// "decode_tokens_per_s", "store"}
std::string generate_json(const GenerateReport& report);

struct ReadyReport {
  const Conversation* conversation = nullptr;
  bool resumed = false;
  bool cut_answer = false;
  uint64_t context_tokens = 0;
  int64_t load_us = 0;
  StoreHealth health;
};
// {"event": "ready", "conversation", "resumed", "cut_answer", "history", ...}
std::string ready_json(const ReadyReport& report);
// {"event": "delta", "id", "text"}
std::string delta_json(TokenId id, std::string_view text);

struct TurnReport {
  Outcome outcome;
  std::string_view answer;  // the whole answer, a part from before a cut included
  const std::vector<TokenId>* answer_ids = nullptr;
  bool finished_cut_answer = false;
  bool durable = false;
};
// {"event": "turn", "text", "token_ids", ..., "durable"}
std::string turn_json(const TurnReport& report);
// {"event": "error", "message"}
std::string error_json(std::string_view message);

}  // namespace ember
