// Engine flags: the flags that commands with a model share, and what they mean to the engine.
//
// Journey    command line -> [engine_flags] -> engine
// Invariant  an unusable store is one warning line on standard error, never an error
// Threads    main
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/runtime/engine.h"

namespace ember {

struct EngineFlags {
  std::string model;
  std::string store;  // empty: default_store_path()
  EncryptionOptions encryption;
  bool use_store = true;
  uint64_t ram_bytes = 0;  // 0: the default of the engine, here and below
  uint64_t disk_bytes = 0;
  StoreSettings settings;
  uint64_t context_tokens = 0;
  uint32_t chunk_tokens = 256;
  uint32_t layers_per_group = 0;
  int workers = 0;
  RestorePolicy restore = RestorePolicy::kByCost;
  AttentionMode attention = AttentionMode::kAuto;
  std::string trace_file;  // not empty: what happened is written there at the end
  WeightForm weights = WeightForm::kStored;
  std::optional<DType> cache_dtype;  // absent: bf16
  std::string config;                // empty: the model's own config.json
  std::string template_name;         // empty: chosen by comparison
  std::optional<bool> thinking;      // without a value as the template has it
};

// Opens the engine and warns of a store that cannot be used as asked. Errors: those of
// Engine::open.
Result<std::unique_ptr<Engine>> open_engine(
    const EngineFlags& flags, const std::function<void(std::string_view, double)>& progress);

// Writes the trace, if one was asked for; a warning where that fails.
void write_trace_file(Engine& engine, const EngineFlags& flags);

// The name of a store's state in every report: "ok", "degraded", "unusable" or "off".
std::string_view store_state_name(StoreState state);

}  // namespace ember
