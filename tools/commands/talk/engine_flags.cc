// Opening the engine from flags.
#include "tools/commands/talk/engine_flags.h"

#include <utility>

#include "engine/runtime/trace_file.h"
#include "store/store_directory.h"
#include "tools/commands/messages.h"

namespace ember {
namespace {

constexpr size_t kTraceEvents = 50'000;  // the last ones are kept

EngineOptions engine_options(const EngineFlags& flags) {
  EngineOptions options;
  options.model_path = flags.model;
  if (flags.use_store) {
    options.store_path = flags.store.empty() ? default_store_path() : flags.store;
  }
  options.encryption = flags.encryption;
  options.ram_bytes = flags.ram_bytes;
  options.disk_bytes = flags.disk_bytes;
  options.settings = flags.settings;
  options.context_tokens = flags.context_tokens;
  options.chunk_tokens = flags.chunk_tokens;
  options.layers_per_group = flags.layers_per_group;
  options.attention = flags.attention;
  options.weights = flags.weights;
  options.cache_dtype = flags.cache_dtype;
  options.config_path = flags.config;
  options.workers = flags.workers;
  options.restore = flags.restore;
  if (!flags.trace_file.empty()) options.trace_events = kTraceEvents;
  return options;
}

}  // namespace

Result<std::unique_ptr<Engine>> open_engine(
    const EngineFlags& flags, const std::function<void(std::string_view, double)>& progress) {
  EngineOptions options = engine_options(flags);
  options.progress = progress;
  EMBER_ASSIGN(std::unique_ptr<Engine> engine, Engine::open(options));
  const StoreHealth& health = engine->cache().health();
  if (health.state == StoreState::kUnusable) {
    print_warning("store " + options.store_path +
                  " is unusable, going on without it: " + health.reason);
  } else if (health.state == StoreState::kDegraded) {
    print_warning("store " + options.store_path + ": " + health.reason);
  }
  return engine;
}

void write_trace_file(Engine& engine, const EngineFlags& flags) {
  if (engine.trace() == nullptr) return;
  const Status written = write_trace(*engine.trace(), flags.trace_file);
  if (!written.ok()) print_warning(written.error().message);
}

std::string_view store_state_name(StoreState state) {
  switch (state) {
    case StoreState::kOk:
      return "ok";
    case StoreState::kDegraded:
      return "degraded";
    case StoreState::kUnusable:
      return "unusable";
    case StoreState::kOff:
      return "off";
  }
  return "unknown";
}

}  // namespace ember
