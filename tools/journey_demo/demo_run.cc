// The play in five acts: the twin, day one with two kills, day two, a new conversation, a cold run.
#include "tools/journey_demo/demo_run.h"

#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/clock.h"

namespace ember {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kQuestionsBeforeIdleKill = 3;
constexpr size_t kDeltasBeforeCut = 2;
constexpr int kCutAttempts = 4;  // a kill may come too late when the machine is busy

// A new folder for one run, gone with it.
class TemporaryFolder {
 public:
  static Result<std::unique_ptr<TemporaryFolder>> make(bool keep) {
    const char* base = std::getenv("TMPDIR");
    std::string path = std::string(base != nullptr ? base : "/tmp") + "/emberkv-demo-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) {
      return Error{ErrorCode::kIo, path + ": the temporary folder cannot be made"};
    }
    return std::make_unique<TemporaryFolder>(path, keep);
  }
  TemporaryFolder(std::string path, bool keep) : path_(std::move(path)), keep_(keep) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!keep_) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool keep_;
};

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return {ErrorCode::kIo, path + ": cannot be written"};
  return {};
}

class DemoRun {
 public:
  DemoRun(const DemoOptions& options, std::string folder)
      : options_(options), folder_(std::move(folder)) {}

  Result<DemoResult> run() {
    const int64_t start_us = system_clock().now_us();
    result_.seed = options_.seed;
    result_.folder = options_.keep ? folder_ : "";
    EMBER_ASSIGN(handbook_, plant_handbook(options_.model, options_.seed, kDemoQuestions));
    result_.handbook_bytes = handbook_.text.size();
    EMBER_TRY(write_file(folder_ + "/handbook.txt", handbook_.text));
    EMBER_TRY(twin());
    EMBER_TRY(killed_conversation());
    EMBER_TRY(new_conversation());
    EMBER_TRY(cold());
    EMBER_TRY(inspect());
    result_.seconds = static_cast<double>(system_clock().now_us() - start_us) / 1e6;
    return std::move(result_);
  }

 private:
  using Client = Result<std::unique_ptr<ChatClient>>;

  void step(const std::string& what) const {
    if (options_.step) options_.step(what);
  }

  Client start_chat(const std::string& store, const std::vector<std::string>& how) const {
    std::vector<std::string> command = {options_.program, "chat",    "--json", "--model",
                                        options_.model,   "--store", store};
    command.insert(command.end(), how.begin(), how.end());
    return ChatClient::start(command);
  }
  Client begin_chat(const std::string& store) const {
    return start_chat(store, {"--system-file", folder_ + "/handbook.txt"});
  }

  const std::string& question(size_t index) const { return handbook_.questions[index].question; }

  // Asks the next question of the killed conversation and notes the answer.
  Status ask_next(ChatClient& client, const std::string& process) {
    EMBER_ASSIGN(AnswerEvent answer, client.ask(question(result_.turns.size())));
    if (!answer.durable) return {ErrorCode::kIo, "a turn was reported that is not durable"};
    note(std::move(answer), process);
    return {};
  }
  void note(AnswerEvent answer, const std::string& process) {
    const size_t index = result_.turns.size();
    result_.turns.push_back(
        {process, handbook_.questions[index], std::move(answer), twin_answers_[index]});
  }

  Status twin() {
    step("twin: one process, never interrupted, answers " + std::to_string(kDemoQuestions) +
         " questions");
    EMBER_ASSIGN(const auto client, begin_chat(folder_ + "/twin"));
    for (size_t i = 0; i < kDemoQuestions; ++i) {
      EMBER_ASSIGN(AnswerEvent answer, client->ask(question(i)));
      twin_answers_.push_back(std::move(answer));
    }
    return client->finish();
  }

  Status killed_conversation() {
    for (int attempt = 1; attempt <= kCutAttempts; ++attempt) {
      store_ = folder_ + "/store-" + std::to_string(attempt);
      result_.turns.clear();
      result_.resumes.clear();
      EMBER_TRY(day_one());
      step("day two: a new process resumes the conversation");
      EMBER_ASSIGN(const auto client, start_chat(store_, {"--resume", conversation_}));
      if (client->ready().cut_answer) return day_two(*client);
      step("the kill came after the answer's end; once more, from a new store");
    }
    return {ErrorCode::kIo, "no kill came in the middle of an answer"};
  }

  Status day_one() {
    step("day one: the handbook is read, " + std::to_string(kQuestionsBeforeIdleKill) +
         " questions are answered, SIGKILL while idle");
    {
      EMBER_ASSIGN(const auto client, begin_chat(store_));
      conversation_ = client->ready().conversation;
      for (size_t i = 0; i < kQuestionsBeforeIdleKill; ++i) {
        EMBER_TRY(ask_next(*client, i == 0 ? "day 1, new" : "day 1"));
      }
      client->kill_now();
    }
    step(
        "day one: a new process resumes and answers one; SIGKILL in the middle of the next answer");
    EMBER_ASSIGN(const auto client, start_chat(store_, {"--resume", "last"}));
    const uint64_t durable = result_.turns.back().answer.cached_tokens();
    EMBER_TRY(ask_next(*client, "day 1, resumed"));
    result_.resumes.push_back(
        {"while idle", durable, result_.turns.back().answer.restored_tokens()});
    EMBER_ASSIGN([[maybe_unused]] const bool cut,
                 client->ask_and_kill(question(result_.turns.size()), kDeltasBeforeCut));
    return {};
  }

  Status day_two(ChatClient& client) {
    const uint64_t durable = result_.turns.back().answer.cached_tokens();
    EMBER_ASSIGN(AnswerEvent finished, client.read_turn());
    if (!finished.finished_cut_answer || !finished.durable) {
      return {ErrorCode::kIo, "the resumed process did not finish the cut answer"};
    }
    result_.resumes.push_back({"in the middle of an answer", durable, finished.restored_tokens()});
    note(std::move(finished), "day 2, cut answer");
    while (result_.turns.size() < kDemoQuestions) EMBER_TRY(ask_next(client, "day 2"));
    return client.finish();
  }

  Status new_conversation() {
    step("a new conversation with the same handbook, from the cache");
    EMBER_ASSIGN(const auto client, begin_chat(store_));
    EMBER_ASSIGN(result_.new_conversation, client->ask(question(0)));
    return client->finish();
  }

  Status cold() {
    step("the same prompt without the cache");
    const Json messages = {{{"role", "system"}, {"content", handbook_.text}},
                           {{"role", "user"}, {"content", question(0)}}};
    const std::string file = folder_ + "/messages.json";
    EMBER_TRY(write_file(file, messages.dump()));
    EMBER_ASSIGN(const std::string line,
                 command({"generate", "--json", "--no-cache", "--model", options_.model,
                          "--messages-file", file, "--temperature", "0"}));
    EMBER_ASSIGN(result_.cold, parse_answer(line));
    return {};
  }

  Status inspect() {
    EMBER_ASSIGN(const std::string stat, command({"stat", "--json", "--store", store_}));
    EMBER_ASSIGN(const std::string verify, command({"verify", "--json", "--store", store_}));
    try {
      const Json json = Json::parse(stat);
      result_.disk_bytes = json.at("disk_bytes").get<uint64_t>();
      result_.raw_bytes = json.at("raw_bytes").get<uint64_t>();
      result_.stored_bytes = json.at("stored_bytes").get<uint64_t>();
      result_.blocks = json.at("blocks").get<uint64_t>();
      result_.tails = json.at("tails").get<uint64_t>();
      result_.damaged = Json::parse(verify).at("damaged").get<uint64_t>();
    } catch (const Json::exception& error) {
      return {ErrorCode::kInvalidArgument, "stat or verify: " + std::string(error.what())};
    }
    return {};
  }

  // Runs emberkv to its end. Errors: kIo when it fails.
  Result<std::string> command(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words = {options_.program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    EMBER_ASSIGN(CommandResult done, run_command(words));
    if (done.exit_code != 0) {
      return Error{ErrorCode::kIo, "emberkv " + arguments[0] + " ended with code " +
                                       std::to_string(done.exit_code) + ": " + done.errors};
    }
    return std::move(done.output);
  }

  const DemoOptions& options_;
  std::string folder_;
  std::string store_;  // of the killed conversation
  std::string conversation_;
  PlantedHandbook handbook_;
  std::vector<AnswerEvent> twin_answers_;
  DemoResult result_;
};

}  // namespace

size_t DemoResult::right() const {
  return static_cast<size_t>(
      std::count_if(turns.begin(), turns.end(), [](const DemoTurn& turn) { return turn.right(); }));
}

size_t DemoResult::twin_right() const {
  return static_cast<size_t>(std::count_if(turns.begin(), turns.end(),
                                           [](const DemoTurn& turn) { return turn.twin_right(); }));
}

bool DemoResult::equal() const {
  return std::all_of(turns.begin(), turns.end(), [](const DemoTurn& turn) { return turn.equal(); });
}

double DemoResult::compression_ratio() const {
  return stored_bytes == 0 ? 0 : static_cast<double>(raw_bytes) / static_cast<double>(stored_bytes);
}

std::vector<DemoCheck> judge(const DemoResult& result) {
  const auto all = [&result](auto holds) {
    return std::all_of(result.turns.begin(), result.turns.end(), holds);
  };
  std::vector<DemoCheck> checks;
  checks.push_back({"every question was answered", result.turns.size() == kDemoQuestions});
  checks.push_back({"token for token equal to the twin", result.equal()});
  checks.push_back({"right wherever the twin is right",
                    all([](const DemoTurn& turn) { return turn.right() || !turn.twin_right(); })});
  checks.push_back({"at least " + std::to_string(kDemoRightAnswers) + " of " +
                        std::to_string(kDemoQuestions) +
                        " answers right, or half of them and as many as the twin",
                    result.right() >= kDemoRightAnswers ||
                        (2 * result.right() >= kDemoQuestions &&
                         result.right() >= result.twin_right())});
  checks.push_back({"restored + computed = prompt", all([](const DemoTurn& turn) {
                      return turn.answer.restored_tokens() + turn.answer.computed_tokens ==
                             turn.answer.prompt_tokens;
                    })});
  for (const DemoResume& resume : result.resumes) {
    checks.push_back({"killed " + resume.kill + ": at most one durable token computed again",
                      resume.computed_again() <= 1 && resume.restored_tokens > 0});
  }
  const AnswerEvent& first = result.turns.empty() ? result.cold : result.turns[0].twin;
  checks.push_back({"new conversation: the system prompt came from the disk, same answer",
                    result.new_conversation.disk_tokens > 0 &&
                        result.new_conversation.token_ids == first.token_ids});
  checks.push_back(
      {"without the cache: nothing restored, same answer",
       result.cold.restored_tokens() == 0 && result.cold.token_ids == first.token_ids});
  checks.push_back({"the store verifies without damage", result.damaged == 0});
  return checks;
}

Result<DemoResult> run_demo(const DemoOptions& options) {
  EMBER_ASSIGN(const auto folder, TemporaryFolder::make(options.keep));
  return DemoRun(options, folder->path()).run();
}

}  // namespace ember
