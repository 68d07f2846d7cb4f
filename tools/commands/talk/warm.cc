// warm: prompt after prompt, a line for each.
#include "tools/commands/talk/warm.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "store/inspect/live_store.h"
#include "tools/commands/command_context.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/messages.h"
#include "tools/commands/progress.h"
#include "tools/commands/stop_on_signal.h"
#include "tools/commands/talk/engine_difference.h"
#include "tools/commands/talk/warmer.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

const char* state_name(WarmState state) {
  switch (state) {
    case WarmState::kKnown:
      return "known";
    case WarmState::kComputed:
      return "computed";
    case WarmState::kWouldCompute:
      return "would compute";
    case WarmState::kCut:
      return "cut";
  }
  return "known";
}

// What became of the prompts, line by line.
class WarmReport {
 public:
  WarmReport(const WarmOptions& options, CommandIo& io) : options_(options), io_(io) {}

  void add(const std::string& name, const Result<Warmed>& warmed) {
    if (!warmed.ok()) ++failed_;
    if (options_.json) return add_json(name, warmed);
    if (!warmed.ok()) return print_error(io_.err, name + ": " + warmed.error().message);
    computed_ += warmed->computed_tokens;
    brought_ += warmed->ram_tokens;
    const int64_t time_us = options_.dry_run ? warmed->predicted_us : warmed->took_us;
    if (std::exchange(lines_, lines_ + 1) == 0) {
      io_.out << "state             tokens     known  computed    to RAM      time  prompt\n";
    }
    std::array<char, 128> line{};
    std::snprintf(line.data(), line.size(), "%-13s %10s %9s %9s %9s %7.1f s  ",
                  state_name(warmed->state), grouped(warmed->prompt_tokens).c_str(),
                  grouped(warmed->hit_tokens).c_str(), grouped(warmed->computed_tokens).c_str(),
                  grouped(warmed->ram_tokens).c_str(), static_cast<double>(time_us) / 1e6);
    io_.out << line.data() << one_line(name, 200) << std::endl;
  }

  int finish(bool stopped) const {
    if (!options_.json && (lines_ > 1 || stopped)) {
      io_.out << counted(lines_, "prompt") << ": " << counted(computed_, "token") << " "
              << (options_.dry_run ? "would be computed" : "computed");
      if (brought_ > 0) io_.out << ", " << grouped(brought_) << " brought to RAM";
      io_.out << std::endl;
    }
    return failed_ == 0 ? kExitOk : kExitFailed;
  }

 private:
  void add_json(const std::string& name, const Result<Warmed>& warmed) {
    Json json = {{"prompt", name}};
    if (warmed.ok()) {
      const bool would = warmed->state == WarmState::kWouldCompute;
      json["state"] = would ? "would_compute" : state_name(warmed->state);
      json["prompt_tokens"] = warmed->prompt_tokens;
      json["hit_tokens"] = warmed->hit_tokens;
      json["computed_tokens"] = warmed->computed_tokens;
      json["ram_tokens"] = warmed->ram_tokens;
      json["predicted_ms"] = static_cast<double>(warmed->predicted_us) / 1000.0;
      json["took_ms"] = static_cast<double>(warmed->took_us) / 1000.0;
    } else {
      json["state"] = "failed";
      json["error"] = warmed.error().message;
    }
    io_.out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }

  const WarmOptions& options_;
  CommandIo& io_;
  uint64_t lines_ = 0;
  uint64_t failed_ = 0;
  uint64_t computed_ = 0;
  uint64_t brought_ = 0;
};

// On a thread beside the engine's.
Result<int> warm_in(const WarmOptions& options, bool to_ram, CommandContext& context,
                    Holding& holding) {
  CommandIo& io = context.io;
  Engine& engine = holding.engine();
  std::unique_ptr<ChatTemplate> chosen;
  const WarmTools tools{
      .engine = engine,
      .chat_template = [&]() -> Result<const ChatTemplate*> {
        if (const ChatTemplate* own = holding.chat_template()) return own;
        if (chosen == nullptr) {
          const EngineFlags& flags = holding.flags();
          EMBER_ASSIGN(chosen, ChatTemplate::choose(engine.tokenizer(), flags.template_name,
                                                    flags.thinking));
        }
        return static_cast<const ChatTemplate*>(chosen.get());
      },
      .reader = [&]() -> Result<std::shared_ptr<StoreReader>> {
        EMBER_ASSIGN(std::unique_ptr<StoreReader> live,
                     open_live_store(engine.cache(), [&](const std::function<void()>& work) {
                       return holding.call(work);
                     }));
        return std::shared_ptr<StoreReader>(std::move(live));
      },
      .io = io};
  WarmReport report(options, io);
  Warmer warmer(holding, io, to_ram);
  const WarmVisitor visit = [&](const std::string& name, Result<WarmPrompt> prompt) -> Status {
    Result<Warmed> warmed = prompt.ok() ? options.dry_run ? warmer.foresee(*prompt)
                                                          : warmer.warm(name, *prompt)
                                        : Result<Warmed>(prompt.error());
    const bool ends = !warmed.ok() && warmed.error().code == ErrorCode::kCancelled;
    if (ends) return warmed.error();
    report.add(name, warmed);
    return {};
  };
  const Status visited = visit_warm_prompts(options.sources, tools, visit);
  const bool stopped = !visited.ok() && visited.error().code == ErrorCode::kCancelled;
  if (!visited.ok() && !stopped) return visited.error();
  const int code = report.finish(stopped);
  if (stopped) {
    return Error{ErrorCode::kCancelled,
                 options.dry_run ? "stopped" : "stopped; what was computed is kept"};
  }
  if (!options.dry_run) EMBER_TRY(warmer.make_durable());
  return code;
}

// Another's pipe could hold this process up, and its /dev/stdin would be ours.
Status take_file(std::string& file, const std::string& folder) {
  file = path_from(folder, file);
  std::error_code error;
  if (std::filesystem::is_regular_file(file, error)) return {};
  return {ErrorCode::kInvalidArgument,
          file + ": is no file; beside a process that holds the store only files are read"};
}

}  // namespace

Result<int> run_warm(const WarmOptions& options, const ForeignCommand& foreign,
                     CommandContext& context) {
  if (options.engine.model.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "no process that holds the store answers: --model names what would compute"};
  }
  if (!options.sources.prefixes.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "--prefix brings blocks to the RAM of a process that holds the store, and none "
                 "answers"};
  }
  Progress progress(context.io);
  EMBER_ASSIGN(const std::unique_ptr<Engine> engine,
               open_engine(options.engine, [&progress](std::string_view what, double done) {
                 progress.show(what, done);
               }));
  progress.clear();
  if (engine->cache().health().state == StoreState::kUnusable) {
    return Error{ErrorCode::kIo, "nothing can be warmed: what is computed would not be kept"};
  }
  const StopOnSignal signals;
  context.io.cancelled = StopOnSignal::asked;
  Result<int> code = kExitOk;
  {
    Holding holding(*engine, options.engine, foreign);
    run_beside(
        holding, [&] { code = warm_in(options, false, context, holding); },
        [](bool ended) { return !ended; });
  }
  // What was computed before it was stopped is kept too.
  static_cast<void>(engine->make_durable());
  write_trace_file(*engine, options.engine);
  return code;
}

Result<int> run_warm_of_other(WarmOptions options, CommandContext& context, Holding& holding) {
  if (!options.engine.model.empty()) {
    EngineFlags own = holding.flags();
    own.context_tokens = holding.engine().context_tokens();  // never changes
    EMBER_TRY(check_same_engine(own, options.engine, context.folder));
  }
  WarmSources& sources = options.sources;
  if (sources.system.file) EMBER_TRY(take_file(*sources.system.file, context.folder));
  for (std::vector<std::string>* files :
       {&sources.prompt_files, &sources.messages_files, &sources.request_files}) {
    for (std::string& file : *files) EMBER_TRY(take_file(file, context.folder));
  }
  return warm_in(options, true, context, holding);
}

}  // namespace ember
