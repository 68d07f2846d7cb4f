// Demo run: the main job of EmberKV, played with real processes and real kills.
//
// Journey    handbook -> chat -> SIGKILL -> resume -> the same tokens as a twin that was never
//            killed
// Owns       a temporary folder with two stores, removed at the end unless it is to be kept
// Invariant  every figure was measured in this run; nothing is known beforehand but the questions
// Threads    one; every wait is bounded
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/journey_demo/chat_client.h"
#include "tools/journey_demo/planted_handbook.h"

namespace ember {

inline constexpr size_t kDemoQuestions = 10;
inline constexpr size_t kDemoRightAnswers = 7;  // fewer is a failure, where the twin did better

struct DemoOptions {
  std::string program;  // emberkv
  std::string model;
  uint64_t seed = 0;
  bool keep = false;                             // the temporary folder
  std::function<void(const std::string&)> step;  // told what happens; may be empty
};

// One answer of the conversation that was killed, beside the twin's.
struct DemoTurn {
  std::string process;  // which process gave it
  PlantedQuestion asked;
  AnswerEvent answer;
  AnswerEvent twin;
  bool equal() const { return answer.token_ids == twin.token_ids; }
  bool right() const { return answer.text.find(asked.value) != std::string::npos; }
  bool twin_right() const { return twin.text.find(asked.value) != std::string::npos; }
};

// What a resumed process had to do again.
struct DemoResume {
  std::string kill;             // "while idle" or "in the middle of an answer"
  uint64_t durable_tokens = 0;  // whose latents were durable at the kill
  uint64_t restored_tokens = 0;
  uint64_t computed_again() const {
    return durable_tokens > restored_tokens ? durable_tokens - restored_tokens : 0;
  }
};

struct DemoResult {
  uint64_t seed = 0;
  uint64_t handbook_bytes = 0;
  std::vector<DemoTurn> turns;
  std::vector<DemoResume> resumes;
  AnswerEvent new_conversation;  // same system prompt, first question, from the cache
  AnswerEvent cold;              // the same prompt without the cache
  uint64_t disk_bytes = 0;
  uint64_t raw_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t blocks = 0;
  uint64_t tails = 0;
  uint64_t damaged = 0;
  std::string folder;  // where the stores are, if kept
  double seconds = 0;

  size_t right() const;
  size_t twin_right() const;
  bool equal() const;
  double compression_ratio() const;
};

struct DemoCheck {
  std::string what;
  bool passed = false;
};
// What must hold for the demo to have passed. Pure.
std::vector<DemoCheck> judge(const DemoResult& result);

// Errors: a process that failed or said nothing in time, with its words.
Result<DemoResult> run_demo(const DemoOptions& options);

}  // namespace ember
