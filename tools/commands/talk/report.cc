// The JSON of generate and chat.
#include "tools/commands/talk/report.h"

#include <nlohmann/json.hpp>

#include "prefix_index/journey.h"
#include "tools/commands/talk/engine_flags.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

double ms(int64_t us) { return static_cast<double>(us) / 1000.0; }

std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json store_json(const StoreHealth& health) {
  return {{"state", store_state_name(health.state)},
          {"reason", health.reason},
          {"since_unix_us", health.since_unix_us}};
}

// What every answer reports of its prompt and its time. `before_us` counts as queueing, so that the
// parts add up to the whole.
void add_outcome(Json& json, const Outcome& outcome, int64_t before_us) {
  json["finish_reason"] = finish_reason_name(outcome.finish);
  json["prompt_tokens"] = outcome.prompt_tokens;
  Json& restored = json["restored_tokens"] = Json::object();
  for (Tier tier : kAllTiers) {
    restored[std::string(tier_name(tier))] =
        outcome.restore.restored_tokens[static_cast<size_t>(tier)];
  }
  json["computed_tokens"] = outcome.computed_tokens;
  json["skipped_tokens"] = outcome.skipped_tokens;
  json["damaged_blocks"] = outcome.restore.damaged_blocks;
  json["ttft_ms"] = ms(before_us + outcome.ttft.total_us());
  json["ttft_parts_ms"] = {{"queue", ms(before_us + outcome.ttft.queue_us)},
                           {"match", ms(outcome.ttft.match_us)},
                           {"restore", ms(outcome.ttft.restore_us)},
                           {"prefill", ms(outcome.ttft.prefill_us)}};
  json["predicted_ms"] = {{"restore", ms(outcome.predicted_restore_us)},
                          {"prefill", ms(outcome.predicted_compute_us)}};
  json["decode_tokens_per_s"] = decode_tokens_per_s(outcome);
}

Json history_json(const Conversation& conversation) {
  Json history = Json::array();
  for (const Turn& turn : conversation.turns) {
    history.push_back({{"user", turn.user},
                       {"token_ids", turn.answer},
                       {"finished", turn.state == TurnState::kFinished},
                       {"finish_reason", turn.finish_reason}});
  }
  return history;
}

}  // namespace

double decode_tokens_per_s(const Outcome& outcome) {
  // The end token was drawn too, so a stopped answer had as many steps after the first draw as ids.
  const size_t drawn = outcome.token_ids.size();
  const size_t steps = outcome.finish == FinishReason::kStop ? drawn : drawn > 0 ? drawn - 1 : 0;
  if (steps == 0 || outcome.decode_us <= 0) return 0;
  return static_cast<double>(steps) * 1e6 / static_cast<double>(outcome.decode_us);
}

std::string generate_json(const GenerateReport& report) {
  Json json;
  json["text"] = report.text;
  json["token_ids"] = report.outcome.token_ids;
  add_outcome(json, report.outcome, report.before_us);
  json["load_ms"] = ms(report.load_us);
  json["store"] = store_json(report.health);
  return one_line(json);
}

std::string ready_json(const ReadyReport& report) {
  Json json;
  json["event"] = "ready";
  json["conversation"] = report.conversation->id;
  json["resumed"] = report.resumed;
  json["cut_answer"] = report.cut_answer;
  json["history"] = history_json(*report.conversation);
  json["context_tokens"] = report.context_tokens;
  json["load_ms"] = ms(report.load_us);
  json["store"] = store_json(report.health);
  return one_line(json);
}

std::string delta_json(TokenId id, std::string_view text) {
  return one_line(Json{{"event", "delta"}, {"id", id}, {"text", text}});
}

std::string turn_json(const TurnReport& report) {
  Json json;
  json["event"] = "turn";
  json["text"] = report.answer;
  json["token_ids"] = *report.answer_ids;
  add_outcome(json, report.outcome, 0);
  json["finished_cut_answer"] = report.finished_cut_answer;
  json["durable"] = report.durable;
  return one_line(json);
}

std::string error_json(std::string_view message) {
  return one_line(Json{{"event", "error"}, {"message", message}});
}

}  // namespace ember
