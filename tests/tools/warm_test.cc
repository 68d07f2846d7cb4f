// warm from outside: what it brings into the cache is what the next request hits.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/command_line.h"
#include "tests/tools/pseudo_terminal.h"

namespace ember {
namespace {

using Json = nlohmann::json;

class WarmTest : public CommandLineTest {
 protected:
  std::vector<std::string> words(const std::vector<std::string>& more) {
    std::vector<std::string> all = {"warm", "--json", "--store", folder_ / "store"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // Without a holder.
  CommandResult warm(std::vector<std::string> more) {
    more.insert(more.end(), {"--model", model()});
    return emberkv(words(more));
  }
  static std::vector<Json> lines(const CommandResult& result) {
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    std::vector<Json> all;
    std::istringstream text(result.output);
    for (std::string line; std::getline(text, line);) all.push_back(Json::parse(line));
    return all;
  }
  std::unique_ptr<ChatClient> chat(const std::vector<std::string>& more) {
    std::vector<std::string> all = {program_path(), "chat",          "--json",       "--model",
                                    model(),        "--store",       folder_ / "store",
                                    "--max-tokens", "12",            "--restore",    "always"};
    all.insert(all.end(), more.begin(), more.end());
    Result<std::unique_ptr<ChatClient>> client = ChatClient::start(all);
    EXPECT_TRUE(client.ok()) << client.error().message;
    return client.ok() ? std::move(client).value() : nullptr;
  }
  static AnswerEvent ask(ChatClient& client, const std::string& question) {
    const Result<AnswerEvent> answer = client.ask(question);
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() ? *answer : AnswerEvent{};
  }
  std::string system_file() { return write("system.txt", some_text(1, 40) + "\n"); }
};

TEST_F(WarmTest, ASystemTextIsThereForWhateverIsAskedBehindIt) {
  const Json planned = lines(warm({"--system-file", system_file(), "--dry-run"})).at(0);
  EXPECT_EQ(planned.at("state"), "would_compute");
  EXPECT_EQ(planned.at("hit_tokens"), 0);
  EXPECT_GT(planned.at("predicted_ms").get<double>(), 0);
  const Json warmed = lines(warm({"--system-file", system_file()})).at(0);
  EXPECT_EQ(warmed.at("state"), "computed");
  const auto front = warmed.at("prompt_tokens").get<uint64_t>();
  EXPECT_EQ(warmed.at("computed_tokens"), front);
  EXPECT_EQ(planned.at("computed_tokens"), front);
  EXPECT_EQ(lines(warm({"--system-file", system_file()})).at(0).at("state"), "known");
  const std::vector<std::string> questions = {"What is the horse of Ada?", "Why?"};
  for (const std::string& question : questions) {
    const auto talk = chat({"--system-file", system_file()});
    ASSERT_NE(talk, nullptr);
    const AnswerEvent answer = ask(*talk, question);
    EXPECT_GE(answer.restored_tokens(), front) << "up to where the question begins";
    EXPECT_LT(answer.computed_tokens, 40u);
    EXPECT_TRUE(talk->finish().ok());
  }
}

TEST_F(WarmTest, FilesAndRequestsLineByLineAndABadLineCostsItselfAlone) {
  const std::string raw = write("raw.txt", some_text(2, 20));
  const std::string requests = write(
      "requests.jsonl",
      Json({{"prompt", some_text(3, 10)}}).dump() + "\n\n" +
          Json({{"messages", {{{"role", "user"}, {"content", some_text(4, 10)}}}}}).dump() +
          "\nno json\n" + Json({{"prompt", 7}}).dump() + "\n" +
          Json({{"messages", {{{"role", "system"}, {"content", some_text(5, 10)}}}}}).dump());
  const CommandResult result = warm({"--prompt-file", raw, "--requests-file", requests});
  EXPECT_EQ(result.exit_code, 1);
  std::vector<Json> all;
  std::istringstream text(result.output);
  for (std::string line; std::getline(text, line);) all.push_back(Json::parse(line));
  ASSERT_EQ(all.size(), 6u) << result.output << result.errors;
  const std::vector<std::string> states = {"computed", "computed", "computed",
                                           "failed",   "failed",   "computed"};
  for (size_t i = 0; i < states.size(); ++i) EXPECT_EQ(all[i].at("state"), states[i]) << i;
  EXPECT_EQ(all[3].at("prompt"), requests + ":4");
  const CommandResult answer =
      emberkv({"generate", "--json", "--model", model(), "--store", folder_ / "store",
               "--prompt-file", raw, "--max-tokens", "2", "--restore", "always"});
  const Result<AnswerEvent> event = parse_answer(answer.output);
  ASSERT_TRUE(event.ok()) << answer.errors;
  EXPECT_EQ(event->computed_tokens, 1u);
}

TEST_F(WarmTest, WithoutAHolderItNeedsAModelAndSaysSo) {
  expect_refused(emberkv(words({"--system", "x"})), {"--model"});
  expect_refused(warm({"--prefix", "00"}), {"--prefix", "RAM"});
  const CommandResult nothing = warm({});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_NE(nothing.errors.find("nothing to warm"), std::string::npos) << nothing.errors;
  const CommandResult absent = warm({"--prompt-file", folder_ / "absent"});
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_NE(absent.output.find("\"failed\""), std::string::npos) << absent.output;
}

TEST_F(WarmTest, APromptThatIsTooLongIsToldOfBeforeItIsTried) {
  const std::string longer = write("longer.txt", some_text(6, 900));
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--prompt-file", longer},
        std::vector<std::string>{"--prompt-file", longer, "--dry-run"}}) {
    const CommandResult result = warm(more);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.output.find("the context holds 4096"), std::string::npos) << result.output;
  }
}

TEST_F(WarmTest, AnInterruptKeepsWhatWasComputedAndSaysSo) {
  std::string lines;
  for (uint64_t i = 0; i < 60; ++i) {
    lines += Json({{"prompt", std::to_string(i) + some_text(i, 120)}}).dump() + "\n";
  }
  const std::string requests = write("requests.jsonl", lines);
  const auto interrupted = [&](const std::vector<std::string>& more, const std::string& begun) {
    std::vector<std::string> all = {program_path(),    "warm",   "--store", folder_ / "store",
                                    "--requests-file", requests};
    all.insert(all.end(), more.begin(), more.end());
    PseudoTerminal terminal(all, {.columns = 200});
    EXPECT_TRUE(terminal.shows(begun)) << terminal.shown();
    terminal.press("\x03");
    EXPECT_EQ(terminal.wait(), 1) << terminal.shown();
    EXPECT_NE(terminal.shown().find("stopped; what was computed is kept"), std::string::npos)
        << terminal.shown();
    EXPECT_NE(terminal.shown().find("tokens computed"), std::string::npos) << terminal.shown();
  };
  interrupted({"--model", model()}, "requests.jsonl:2\r");
  const auto holder = chat({"--system", "The horse of Ada is Pell."});
  ASSERT_NE(holder, nullptr);
  interrupted({}, "requests.jsonl:12\r");
  EXPECT_TRUE(holder->finish().ok());
  std::istringstream all(warm({"--requests-file", requests, "--dry-run"}).output);
  std::string first;
  ASSERT_TRUE(std::getline(all, first));
  EXPECT_EQ(Json::parse(first).at("state"), "known");
}

TEST_F(WarmTest, InAHolderItNeedsNoModelAndItsTalkHitsWhatWasWarmed) {
  const auto holder = chat({"--system", "The horse of Ada is Pell."});
  ASSERT_NE(holder, nullptr);
  const Json warmed = lines(emberkv(words({"--system-file", system_file()}))).at(0);
  EXPECT_EQ(warmed.at("state"), "computed");
  const auto front = warmed.at("prompt_tokens").get<uint64_t>();
  const auto talk = chat({"--system-file", system_file()});
  ASSERT_NE(talk, nullptr);
  const AnswerEvent answer = ask(*talk, "What is the horse of Ada?");
  EXPECT_GE(answer.restored_tokens(), front);
  EXPECT_FALSE(ask(*holder, "Who?").token_ids.empty());
  expect_refused(emberkv(words({"--system", "x", "--model", folder_ / "other"})), {"other"});
  expect_refused(emberkv(words({"--prompt-file", "/dev/stdin"})), {"/dev/stdin"});
  const std::string talked = talk->ready().conversation;
  EXPECT_TRUE(talk->finish().ok());
  EXPECT_TRUE(holder->finish().ok());
  const auto later = chat({"--system", "Another one."});
  ASSERT_NE(later, nullptr);
  const Json brought = lines(emberkv(words({"--conversation", talked}))).at(0);
  EXPECT_EQ(brought.at("state"), "known");
  EXPECT_GE(brought.at("ram_tokens").get<uint64_t>(), front / 64 * 64);
  const std::string rows = emberkv({"ls", "--tier", "host", "--blocks", "--json", "--limit", "1",
                                    "--store", folder_ / "store"})
                               .output;
  EXPECT_NE(rows.find("\"hash\""), std::string::npos) << "it lies in RAM";
  const std::string hash = Json::parse(rows).at("hash");
  EXPECT_EQ(lines(emberkv(words({"--prefix", hash}))).at(0).at("state"), "known");
  EXPECT_TRUE(later->finish().ok());
}

}  // namespace
}  // namespace ember
