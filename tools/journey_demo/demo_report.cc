// Prints a demo's result.
#include "tools/journey_demo/demo_report.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/bytes.h"
#include "base/format.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

using ull = unsigned long long;

void add_answer(std::string& out, const char* process, const AnswerEvent& answer) {
  print_to(out, "%-18s %7llu %7llu %6llu %6llu %9llu %8.1f", process, ull{answer.prompt_tokens},
           ull{answer.device_tokens}, ull{answer.host_tokens}, ull{answer.disk_tokens},
           ull{answer.computed_tokens}, answer.ttft_ms);
}

Json answer_json(const AnswerEvent& answer) {
  return {{"text", answer.text},
          {"token_ids", answer.token_ids},
          {"finish_reason", answer.finish_reason},
          {"prompt_tokens", answer.prompt_tokens},
          {"restored_tokens",
           {{"device", answer.device_tokens},
            {"host", answer.host_tokens},
            {"disk", answer.disk_tokens},
            {"remote", answer.remote_tokens}}},
          {"computed_tokens", answer.computed_tokens},
          {"ttft_ms", answer.ttft_ms},
          {"decode_tokens_per_s", answer.decode_tokens_per_s}};
}

}  // namespace

std::string demo_table(const DemoResult& result, const std::vector<DemoCheck>& checks) {
  std::string out;
  print_to(out, "\nseed %llu; restored tokens by tier, computed tokens, time to first token\n",
           ull{result.seed});
  out += "process             prompt  device   host   disk  computed  ttft ms  equal  right\n";
  for (const DemoTurn& turn : result.turns) {
    add_answer(out, turn.process.c_str(), turn.answer);
    print_to(out, "  %-5s  %s\n", turn.equal() ? "yes" : "NO", turn.right() ? "yes" : "no");
  }
  add_answer(out, "new conversation", result.new_conversation);
  out += '\n';
  add_answer(out, "without the cache", result.cold);
  out += "\n\n";
  for (const DemoResume& resume : result.resumes) {
    print_to(out, "killed %s: %llu tokens were durable, %llu restored, %llu computed again\n",
             resume.kill.c_str(), ull{resume.durable_tokens}, ull{resume.restored_tokens},
             ull{resume.computed_again()});
  }
  print_to(out, "time to first token, same prompt: %.1f ms with the cache, %.1f ms without\n",
           result.new_conversation.ttft_ms, result.cold.ttft_ms);
  print_to(out,
           "store: %llu blocks, %llu tails, %s on disk; latents %s as %s, %.2f times smaller\n",
           ull{result.blocks}, ull{result.tails}, human_bytes(result.disk_bytes).c_str(),
           human_bytes(result.raw_bytes).c_str(), human_bytes(result.stored_bytes).c_str(),
           result.compression_ratio());
  print_to(out, "right answers: %zu of %zu, the twin %zu; %.1f s in all\n\n", result.right(),
           result.turns.size(), result.twin_right(), result.seconds);
  for (const DemoCheck& check : checks) {
    out += (check.passed ? "ok      " : "FAILED  ") + check.what + '\n';
  }
  if (!result.folder.empty()) out += "\nkept: " + result.folder + '\n';
  return out;
}

std::string this_machine() {
  std::ifstream cpus("/proc/cpuinfo");
  std::string name = "unknown processor";
  for (std::string line; std::getline(cpus, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) != 0 || colon == std::string::npos) continue;
    name = line.substr(colon + 2);
    break;
  }
  return name + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

std::string demo_markdown(const DemoResult& result, const std::string& machine) {
  std::string out = "| measured by `tools/demo --seed " + std::to_string(result.seed) + "` on " +
                    machine + " | |\n|---|---|\n";
  const auto row = [&out](const std::string& what, const std::string& value) {
    out += "| " + what + " | " + value + " |\n";
  };
  for (const DemoResume& resume : result.resumes) {
    row("killed " + resume.kill + ": durable, restored, computed again",
        std::to_string(resume.durable_tokens) + ", " + std::to_string(resume.restored_tokens) +
            ", " + std::to_string(resume.computed_again()) + " tokens");
  }
  std::string ttft;
  print_to(ttft, "%.1f ms with the cache, %.1f ms without", result.new_conversation.ttft_ms,
           result.cold.ttft_ms);
  row("first token of a new chat over " + std::to_string(result.cold.prompt_tokens) + " tokens",
      ttft);
  std::string ratio;
  print_to(ratio, "%s, latents %.2f times smaller", human_bytes(result.disk_bytes).c_str(),
           result.compression_ratio());
  row("on disk", ratio);
  row("token for token equal to the twin", result.equal() ? "yes" : "no");
  row("right answers", std::to_string(result.right()) + " of " +
                           std::to_string(result.turns.size()) + ", the twin " +
                           std::to_string(result.twin_right()));
  return out;
}

std::string demo_json(const DemoResult& result, const std::vector<DemoCheck>& checks) {
  Json json;
  json["seed"] = result.seed;
  json["handbook_bytes"] = result.handbook_bytes;
  json["turns"] = Json::array();
  for (const DemoTurn& turn : result.turns) {
    json["turns"].push_back({{"process", turn.process},
                             {"question", turn.asked.question},
                             {"value", turn.asked.value},
                             {"equal", turn.equal()},
                             {"right", turn.right()},
                             {"twin_right", turn.twin_right()},
                             {"answer", answer_json(turn.answer)},
                             {"twin", answer_json(turn.twin)}});
  }
  json["resumes"] = Json::array();
  for (const DemoResume& resume : result.resumes) {
    json["resumes"].push_back({{"killed", resume.kill},
                               {"durable_tokens", resume.durable_tokens},
                               {"restored_tokens", resume.restored_tokens},
                               {"computed_again", resume.computed_again()}});
  }
  json["new_conversation"] = answer_json(result.new_conversation);
  json["cold"] = answer_json(result.cold);
  json["ttft_ms"] = {{"cached", result.new_conversation.ttft_ms}, {"cold", result.cold.ttft_ms}};
  json["blocks"] = result.blocks;
  json["tails"] = result.tails;
  json["disk_bytes"] = result.disk_bytes;
  json["raw_bytes"] = result.raw_bytes;
  json["stored_bytes"] = result.stored_bytes;
  json["compression_ratio"] = result.compression_ratio();
  json["equal"] = result.equal();
  json["right"] = result.right();
  json["twin_right"] = result.twin_right();
  json["seconds"] = result.seconds;
  json["checks"] = Json::array();
  for (const DemoCheck& check : checks) {
    json["checks"].push_back({{"what", check.what}, {"passed", check.passed}});
  }
  json["passed"] = std::all_of(checks.begin(), checks.end(),
                               [](const DemoCheck& check) { return check.passed; });
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ember
