// Reads the JSON lines of emberkv and turns them into structs.
#include "tools/journey_demo/chat_client.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace ember {
namespace {

using Json = nlohmann::json;

Error malformed(const std::string& line, const std::string& why) {
  return {ErrorCode::kInvalidArgument, "unexpected line '" + line + "': " + why};
}

AnswerEvent answer_from(const Json& json) {
  AnswerEvent answer;
  answer.text = json.at("text").get<std::string>();
  answer.token_ids = json.at("token_ids").get<std::vector<int32_t>>();
  answer.finish_reason = json.at("finish_reason").get<std::string>();
  answer.prompt_tokens = json.at("prompt_tokens").get<uint64_t>();
  const Json& restored = json.at("restored_tokens");
  answer.device_tokens = restored.at("device").get<uint64_t>();
  answer.host_tokens = restored.at("host").get<uint64_t>();
  answer.disk_tokens = restored.at("disk").get<uint64_t>();
  answer.remote_tokens = restored.at("remote").get<uint64_t>();
  answer.computed_tokens = json.at("computed_tokens").get<uint64_t>();
  answer.damaged_blocks = json.at("damaged_blocks").get<uint64_t>();
  answer.ttft_ms = json.at("ttft_ms").get<double>();
  answer.decode_tokens_per_s = json.at("decode_tokens_per_s").get<double>();
  answer.durable = json.value("durable", false);
  answer.finished_cut_answer = json.value("finished_cut_answer", false);
  if (json.contains("store")) answer.store_state = json.at("store").at("state").get<std::string>();
  return answer;
}

ReadyEvent ready_from(const Json& json) {
  ReadyEvent ready;
  ready.conversation = json.at("conversation").get<std::string>();
  ready.resumed = json.at("resumed").get<bool>();
  ready.cut_answer = json.at("cut_answer").get<bool>();
  for (const Json& turn : json.at("history")) {
    ready.history.push_back({turn.at("user").get<std::string>(),
                             turn.at("token_ids").get<std::vector<int32_t>>(),
                             turn.at("finished").get<bool>()});
  }
  ready.store_state = json.at("store").at("state").get<std::string>();
  return ready;
}

}  // namespace

Result<AnswerEvent> parse_answer(const std::string& json_line) {
  try {
    return answer_from(Json::parse(json_line));
  } catch (const Json::exception& error) {
    return malformed(json_line, error.what());
  }
}

Result<ReadyEvent> parse_ready(const std::string& json_line) {
  try {
    return ready_from(Json::parse(json_line));
  } catch (const Json::exception& error) {
    return malformed(json_line, error.what());
  }
}

std::string event_of(const std::string& json_line) {
  const Json json = Json::parse(json_line, nullptr, false);
  return json.is_object() ? json.value("event", std::string()) : std::string();
}

Result<std::unique_ptr<ChatClient>> ChatClient::start(const std::vector<std::string>& command) {
  EMBER_ASSIGN(std::unique_ptr<ChildProcess> child, ChildProcess::start(command));
  std::unique_ptr<ChatClient> client(new ChatClient(std::move(child)));
  EMBER_ASSIGN(const std::optional<std::string> line, client->child_->read_line());
  if (!line) return client->failed("the chat ended before it was ready");
  EMBER_ASSIGN(client->ready_, parse_ready(*line));
  return client;
}

Error ChatClient::failed(const std::string& what) const {
  return {ErrorCode::kIo, what + "; it wrote: " + child_->errors()};
}

Result<AnswerEvent> ChatClient::read_turn() {
  while (true) {
    EMBER_ASSIGN(const std::optional<std::string> line, child_->read_line());
    if (!line) return failed("the chat ended before its answer was finished");
    const std::string event = event_of(*line);
    if (event == "turn") return parse_answer(*line);
    if (event == "error") return failed("the chat could not answer");
  }
}

Result<AnswerEvent> ChatClient::ask(const std::string& question) {
  EMBER_TRY(child_->write(question + "\n"));
  return read_turn();
}

Result<bool> ChatClient::ask_and_kill(const std::string& question, size_t deltas) {
  EMBER_TRY(child_->write(question + "\n"));
  bool cut = true;
  for (size_t seen = 0; seen < deltas && cut;) {
    EMBER_ASSIGN(const std::optional<std::string> line, child_->read_line());
    if (!line) return failed("the chat ended before its answer began");
    const std::string event = event_of(*line);
    if (event == "delta") ++seen;
    if (event == "turn") cut = false;
    if (event == "error") return failed("the chat could not answer");
  }
  child_->kill_now();
  // The answer may have been finished between the last piece read and the kill.
  EMBER_ASSIGN(const std::string rest, child_->read_rest());
  if (rest.find("\"event\":\"turn\"") != std::string::npos) cut = false;
  return cut;
}

Status ChatClient::finish() {
  EMBER_TRY(child_->write("/exit\n"));
  child_->close_input();
  EMBER_ASSIGN(const int code, child_->wait());
  if (code != 0) return failed("the chat ended with code " + std::to_string(code));
  return {};
}

Result<CommandResult> run_command(const std::vector<std::string>& command, const std::string& input,
                                  int64_t patience_us) {
  EMBER_ASSIGN(const std::unique_ptr<ChildProcess> child, ChildProcess::start(command));
  CommandResult result;
  // A child may end without reading its input; what it says then is the result.
  if (!input.empty()) (void)child->write(input, patience_us);
  child->close_input();
  EMBER_ASSIGN(result.output, child->read_rest(patience_us));
  EMBER_ASSIGN(result.exit_code, child->wait(patience_us));
  result.errors = child->errors();
  return result;
}

}  // namespace ember
