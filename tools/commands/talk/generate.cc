// generate: reads the prompt, opens the engine, streams or reports the answer, waits for the disk.
#include "tools/commands/talk/generate.h"

#include <sstream>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/text/chat_template.h"
#include "engine/text/text_file.h"
#include "tools/commands/messages.h"
#include "tools/commands/progress.h"
#include "tools/commands/talk/dialogue.h"
#include "tools/commands/talk/report.h"

namespace ember {
namespace {

// One request, streamed to `out` unless JSON is asked for. Errors: of the request.
Result<GenerateReport> answer(Engine& engine, const GenerateOptions& options,
                              std::vector<TokenId> prompt, Progress& progress, std::ostream& out) {
  const int64_t opened_us = system_clock().now_us();
  Request request;
  request.prompt = std::move(prompt);
  if (request.prompt.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the prompt has no tokens, expected at least one"};
  }
  request.max_tokens = options.max_tokens;
  request.temperature = options.temperature;
  request.seed = options.seed;
  request.use_cache = options.engine.use_store;

  StreamDecoder decoder(engine.tokenizer(), true);
  GenerateReport report;
  request.on_token = [&](TokenId id) {
    progress.clear();
    const std::string piece = decoder.push(id);
    report.text += piece;
    if (!options.json) out << piece << std::flush;
  };
  report.before_us = system_clock().now_us() - opened_us;
  report.outcome = engine.run(std::move(request));
  progress.clear();
  if (report.outcome.finish == FinishReason::kFailed) {
    if (!options.json && !report.text.empty()) out << std::endl;
    return report.outcome.status.error();
  }
  const std::string rest = decoder.finish();
  report.text += rest;
  if (!options.json) out << rest << std::endl;
  return report;
}

void make_durable(Engine& engine, const EngineFlags& flags) {
  const bool durable = engine.make_durable();
  const StoreState state = engine.cache().stats().health.state;
  if (!durable && (state == StoreState::kOk || state == StoreState::kDegraded)) {
    print_warning("not all that was computed could be stored; the next run computes it again");
  }
  write_trace_file(engine, flags);
}

void print_report(Engine& engine, GenerateReport& report, std::ostream& out) {
  report.load_us = engine.load_us();
  report.health = engine.cache().stats().health;
  out << generate_json(report) << std::endl;
}

Result<PromptTokens> tokens_of(Engine& engine, const PromptSource& source,
                               const EngineFlags& flags) {
  const EncodeText encode = [&engine](std::string_view text, bool bos) {
    return engine.encode(text, bos);
  };
  return tokenize_prompt(engine.tokenizer(), encode, source, flags.template_name, flags.thinking);
}

// A prompt a line, in order; blank lines are skipped.
Status answer_file(Engine& engine, const GenerateOptions& options, const std::string& text,
                   Progress& progress, std::ostream& out) {
  EMBER_ASSIGN(const std::string system, read_system(options.prompt.system));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (!options.json) out << "Prompt: " << line << "\nCompletion: " << std::flush;
    PromptSource source;
    if (options.prompt.system.given()) source.input.messages.push_back(Message{"system", system});
    source.input.messages.push_back(Message{"user", line});
    EMBER_ASSIGN(PromptTokens prompt, tokens_of(engine, source, options.engine));
    EMBER_ASSIGN(GenerateReport report,
                 answer(engine, options, std::move(prompt.ids), progress, out));
    if (options.json) {
      print_report(engine, report, out);
    } else {
      out << std::endl;
    }
  }
  make_durable(engine, options.engine);
  return {};
}

}  // namespace

Status run_generate(const GenerateOptions& options, const ForeignCommand& foreign,
                    std::istream& in, std::ostream& out) {
  PromptSource source;
  std::string prompts;
  if (options.input_file) {
    EMBER_ASSIGN(prompts, read_text_file(*options.input_file));
  } else if (!options.interactive) {
    EMBER_ASSIGN(source, read_prompt(options.prompt));
  }
  Progress progress;
  Result<std::unique_ptr<Engine>> opened =
      open_engine(options.engine, [&progress](std::string_view what, double done) {
        progress.show(what, done);
      });
  if (!opened.ok() && opened.error().code == ErrorCode::kBusy) {
    return {ErrorCode::kBusy, opened.error().message +
                                  "; chat talks in that process, --no-cache answers without it"};
  }
  EMBER_ASSIGN(const std::unique_ptr<Engine> engine, std::move(opened));
  Holding holding(*engine, options.engine, foreign);
  if (options.interactive) {
    EMBER_TRY(run_dialogue(holding, options, in, out));
    write_trace_file(*engine, options.engine);
    return {};
  }
  if (options.input_file) return answer_file(*engine, options, prompts, progress, out);
  const int64_t opened_us = system_clock().now_us();
  EMBER_ASSIGN(PromptTokens prompt, tokens_of(*engine, source, options.engine));
  const int64_t tokenize_us = system_clock().now_us() - opened_us;
  EMBER_ASSIGN(GenerateReport report,
               answer(*engine, options, std::move(prompt.ids), progress, out));
  report.before_us += tokenize_us;
  make_durable(*engine, options.engine);
  if (options.json) print_report(*engine, report, out);
  return {};
}

}  // namespace ember
