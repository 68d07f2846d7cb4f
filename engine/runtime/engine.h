// Engine: a model, its tokenizer and its cache, opened together and ready for requests.
//
// Journey    options -> [engine] -> scheduler; the one place where all rooms meet
// Owns       device, weights, tokenizer, block cache, forward, scheduler, in that order
// Invariant  a store that is damaged is no error: requests run without it and cache().health() says
//            so
// Threads    engine thread only (the thread that opened it)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/checkpoint/model_config.h"
#include "engine/model/attention_mode.h"
#include "engine/model/identity.h"
#include "engine/model/weights.h"
#include "engine/runtime/request.h"
#include "engine/runtime/scheduler.h"
#include "engine/runtime/trace.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "store/block_cache.h"

namespace ember {

struct EngineOptions {
  std::string model_path;
  std::string store_path;       // empty: no store
  EncryptionOptions encryption;
  uint64_t ram_bytes = 0;       // 0: default_ram_bytes()
  uint64_t disk_bytes = 0;      // 0: default_disk_bytes(store_path)
  StoreSettings settings;
  uint64_t context_tokens = 0;  // 0: the model's, or what the RAM holds
  uint32_t chunk_tokens = 256;  // most prompt tokens in a step, of all requests together
  SchedulerLimits limits;       // of requests at once (engine/runtime/scheduler.h)
  uint32_t block_tokens = kDefaultBlockTokens;
  uint32_t layers_per_group = 0;  // 0: chosen by size
  DType precision = DType::kBf16;
  std::optional<DType> cache_dtype;  // kF8E4M3 beside bf16; absent: as `precision`
  WeightForm weights = WeightForm::kStored;
  std::string config_path;  // empty: the model's own config.json
  AttentionMode attention = AttentionMode::kAuto;
  int workers = 0;  // 0: every core
  bool need_tokenizer = true;
  RestorePolicy restore = RestorePolicy::kByCost;
  size_t trace_events = 0;  // so many are kept (engine/runtime/trace.h); 0: nothing is recorded
  // Told of loading and of each request's prompt; may be empty. `done` is in [0, 1].
  std::function<void(std::string_view what, double done)> progress;
};

class Engine {
 public:
  // Errors: those of its parts, each naming the file or field.
  static Result<std::unique_ptr<Engine>> open(const EngineOptions& options);
  virtual ~Engine() = default;

  virtual Device& device() = 0;
  virtual const ModelConfig& config() const = 0;
  virtual const Identity& identity() const = 0;
  // For whatever but encode(), which it has in common with others.
  virtual const Tokenizer& tokenizer() const = 0;
  // Tokenizer::encode, one at a time. Threads: any.
  virtual Result<std::vector<TokenId>> encode(std::string_view text, bool bos = false) = 0;
  virtual BlockCache& cache() = 0;
  virtual Scheduler& scheduler() = 0;
  virtual const Trace* trace() const = 0;  // null unless asked for
  virtual uint64_t context_tokens() const = 0;
  virtual int64_t load_us() const = 0;

  // Scheduler::submit for a token outside the vocabulary too: kInvalidArgument. A request without
  // its own on_prefill is shown by options.progress.
  virtual Result<uint64_t> submit(Request request) = 0;
  // Runs one request to its end on the calling thread (the engine thread).
  virtual Outcome run(Request request) = 0;
  // Writes out what is not durable yet and waits for it (at most `timeout_us`). False: not all of
  // it became durable; cache().stats() says how much.
  virtual bool make_durable(int64_t timeout_us = 60'000'000) = 0;
};

}  // namespace ember
