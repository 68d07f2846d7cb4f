// Opening the engine: every room in the order of the journey, the store last, so that a wrong model
// leaves it untouched.
#include "engine/runtime/engine.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/model_size.h"
#include "engine/model/forward.h"
#include "engine/model/weights.h"
#include "engine/runtime/namespace_entry.h"
#include "store/cost_note.h"
#include "store/ram_plan.h"

namespace ember {
namespace {

constexpr int64_t kNoteCostsEveryUs = 60'000'000;

class EngineImpl final : public Engine {
 public:
  explicit EngineImpl(EngineOptions options) : options_(std::move(options)) {}
  ~EngineImpl() override { note_costs(); }

  Status open();

  Device& device() override { return *device_; }
  const ModelConfig& config() const override { return weights_->config; }
  const Identity& identity() const override { return identity_; }
  const Tokenizer& tokenizer() const override {
    EMBER_CHECK(tokenizer_ != nullptr, "the engine was opened without a tokenizer");
    return *tokenizer_;
  }
  Result<std::vector<TokenId>> encode(std::string_view text, bool bos) override {
    EMBER_CHECK(tokenizer_ != nullptr, "the engine was opened without a tokenizer");
    const MutexLock lock(encoding_);
    return tokenizer_->encode(text, bos);
  }
  BlockCache& cache() override { return *cache_; }
  Scheduler& scheduler() override { return *scheduler_; }
  const Trace* trace() const override { return trace_.get(); }
  uint64_t context_tokens() const override { return context_tokens_; }
  int64_t load_us() const override { return load_us_; }

  Result<uint64_t> submit(Request request) override;
  Outcome run(Request request) override;
  bool make_durable(int64_t timeout_us) override;

 private:
  Result<ModelConfig> read_config() const;
  Status open_model();
  Status open_cache();
  Status open_forward();
  Status warm_up();
  bool keeps_costs() const {
    const StoreState state = cache_->health().state;
    return state == StoreState::kOk || state == StoreState::kDegraded;
  }
  void note_costs();
  std::function<void(double)> progress(std::string_view what) const {
    if (!options_.progress) return {};
    return [this, what](double done) { options_.progress(what, done); };
  }

  EngineOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Mutex encoding_;  // its cache
  std::unique_ptr<ModelWeights> weights_;
  Identity identity_;
  KvLayout layout_;
  uint64_t context_tokens_ = 0;
  std::unique_ptr<BlockCache> cache_;
  std::unique_ptr<Forward> forward_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Scheduler> scheduler_;
  int64_t load_us_ = 0;
  uint64_t noted_computes_ = 0;   // steps that what was written down knows of
  int64_t noted_at_us_ = 0;
};

// The longest context that both the model and the RAM hold.
uint64_t fitting_context(uint64_t ram_bytes, const KvLayout& layout, uint64_t most) {
  if (plan_ram(ram_bytes, layout, most).ok()) return most;
  uint64_t fits = 0;
  uint64_t too_much = most;
  while (too_much - fits > layout.block_tokens()) {
    const uint64_t middle = fits + (too_much - fits) / 2;
    (plan_ram(ram_bytes, layout, middle).ok() ? fits : too_much) = middle;
  }
  return fits;
}

Status EngineImpl::open() {
  const int64_t start_us = system_clock().now_us();
  EMBER_TRY(check_limits(options_.limits, options_.chunk_tokens));
  EMBER_TRY(open_model());
  EMBER_TRY(open_cache());
  EMBER_TRY(open_forward());
  EMBER_TRY(warm_up());
  load_us_ = system_clock().now_us() - start_us;
  return {};
}

// A file given apart may say nothing of end tokens (the inference form does not): those that the
// folder's own files name end an answer too.
Result<ModelConfig> EngineImpl::read_config() const {
  if (options_.config_path.empty()) return load_model_config(options_.model_path);
  EMBER_ASSIGN(ModelConfig config, load_model_config_file(options_.config_path));
  const Result<ModelConfig> own = load_model_config(options_.model_path);
  if (!own.ok()) return config;
  for (const uint32_t id : own->eos_ids) {
    const bool known =
        std::find(config.eos_ids.begin(), config.eos_ids.end(), id) != config.eos_ids.end();
    if (!known && id < config.vocab_size) config.eos_ids.push_back(id);
  }
  return config;
}

Status EngineImpl::open_model() {
  EMBER_ASSIGN(const ModelConfig config, read_config());
  const DType cache_dtype = options_.cache_dtype.value_or(options_.precision);
  if (cache_dtype != options_.precision && options_.precision != DType::kBf16) {
    return {ErrorCode::kUnsupported, "an fp8 cache stands beside bf16 activations only"};
  }
  EMBER_ASSIGN(std::shared_ptr<Checkpoint> checkpoint, Checkpoint::open(options_.model_path));
  if (options_.need_tokenizer) {
    EMBER_ASSIGN(tokenizer_, Tokenizer::load(options_.model_path));
  }
  device_ = make_cpu_device({.workers = options_.workers});
  EMBER_ASSIGN(weights_, load_weights(checkpoint, config, options_.precision, *device_,
                                      progress("weights"), options_.weights));
  EMBER_ASSIGN(const BlockHash fingerprint, checkpoint->fingerprint(progress("fingerprint")));
  layout_ = model_kv_layout(config, cache_dtype, options_.block_tokens, options_.layers_per_group);
  identity_ =
      make_identity(config, fingerprint, layout_, *device_, options_.attention, options_.weights);
  return {};
}

Status EngineImpl::open_cache() {
  const uint64_t ram_bytes = options_.ram_bytes > 0 ? options_.ram_bytes : default_ram_bytes();
  const uint64_t most = config().max_positions;
  if (options_.context_tokens > most) {
    return {ErrorCode::kInvalidArgument,
            "context of " + std::to_string(options_.context_tokens) + " tokens asked for; " +
                options_.model_path + " has max_position_embeddings " + std::to_string(most)};
  }
  context_tokens_ = options_.context_tokens > 0 ? options_.context_tokens
                                                : fitting_context(ram_bytes, layout_, most);
  BlockCacheOptions cache;
  cache.store_path = options_.store_path;
  cache.encryption = options_.encryption;
  cache.layout = layout_;
  cache.name_space = identity_.name_space;
  cache.name_space_entry =
      make_namespace_entry(options_.model_path, identity_, options_.store_path);
  cache.numerics_build = identity_.numerics_build;
  cache.ram_bytes = ram_bytes;
  cache.disk_bytes = options_.disk_bytes;
  cache.settings = options_.settings;
  if (cache.disk_bytes == 0 && !cache.store_path.empty()) {
    EMBER_ASSIGN(cache.disk_bytes, default_disk_bytes(cache.store_path));
  }
  cache.request_tokens = std::max<uint64_t>(context_tokens_, 1);
  EMBER_ASSIGN(cache_, BlockCache::open(cache, *device_));
  return {};
}

Status EngineImpl::open_forward() {
  ForwardOptions forward;
  forward.precision = options_.precision;
  forward.attention = attention_form(options_.attention, 0, true);
  forward.both_forms = options_.attention == AttentionMode::kAuto;
  if (options_.trace_events > 0) {
    trace_ = std::make_unique<Trace>(options_.trace_events);
    forward.clock = &system_clock();
  }
  const size_t max_running = options_.limits.max_running;
  forward.max_sequences = max_running;
  forward.max_rows = options_.chunk_tokens + max_running;
  forward.max_logit_rows = max_running;
  forward.max_blocks = (context_tokens_ + layout_.block_tokens() - 1) / layout_.block_tokens();
  forward.max_positions = context_tokens_;
  std::vector<LatentCacheView> views;
  for (uint32_t layer = 0; layer < layout_.layers(); ++layer) {
    views.push_back(cache_->layer_view(layer));
  }
  uint32_t valid_vocab = config().vocab_size;
  if (tokenizer_) {
    valid_vocab = std::min(valid_vocab, static_cast<uint32_t>(tokenizer_->vocab_size()));
  }
  EMBER_ASSIGN(forward_,
               Forward::create(*weights_, forward, std::move(views), valid_vocab, *device_));
  SchedulerOptions scheduler;
  scheduler.chunk_tokens = options_.chunk_tokens;
  scheduler.limits = options_.limits;
  scheduler.context_tokens = context_tokens_;
  scheduler.stop_ids = config().eos_ids;
  scheduler.restore = options_.restore;
  scheduler.attention = options_.attention;
  scheduler.trace = trace_.get();
  scheduler.costs = guessed_prior(count_parameters(config()).active, layout_.token_bytes(),
                                  options_.chunk_tokens, device_->worker_count());
  if (keeps_costs()) {
    scheduler.costs.learned = read_cost_note(options_.store_path, identity_.name_space);
  }
  scheduler_ = Scheduler::create(*device_, *cache_, *forward_, std::move(scheduler));
  return {};
}

// Draws one token after one that means nothing: what happens once (the weights' first pages, the
// kernels' choice for each shape) is part of loading and not of the first request.
Status EngineImpl::warm_up() {
  if (context_tokens_ < 2) return {};
  Request request;
  request.prompt = {0};
  request.max_tokens = 1;
  request.use_cache = false;
  request.on_prefill = [](size_t, size_t) {};
  EMBER_TRY(run(std::move(request)).status);
  noted_computes_ = scheduler_->costs().observations;
  return {};
}

Result<uint64_t> EngineImpl::submit(Request request) {
  for (TokenId id : request.prompt) {
    if (id >= 0 && static_cast<uint32_t>(id) < config().vocab_size) continue;
    return {ErrorCode::kInvalidArgument, "token " + std::to_string(id) +
                                             " is outside the model's vocabulary of " +
                                             std::to_string(config().vocab_size)};
  }
  if (!request.on_prefill && options_.progress) {
    request.on_prefill = [this](size_t computed, size_t prompt) {
      options_.progress("prompt", static_cast<double>(computed) / static_cast<double>(prompt));
    };
  }
  return scheduler_->submit(std::move(request));
}

Outcome EngineImpl::run(Request request) {
  Outcome outcome;
  bool done = false;
  request.on_done = [&outcome, &done, client = std::move(request.on_done)](const Outcome& result) {
    outcome = result;
    done = true;
    if (client) client(result);
  };
  if (Result<uint64_t> id = submit(std::move(request)); !id.ok()) {
    outcome.status = id.error();
    return outcome;
  }
  scheduler_->run_until([&done] { return done; });
  return outcome;
}

bool EngineImpl::make_durable(int64_t timeout_us) {
  const Ticket ticket = cache_->sync();
  if (!ticket) return true;
  const auto outcome = scheduler_->follow(ticket);
  const bool durable = scheduler_->wait_for(*outcome, timeout_us) && outcome->status.ok();
  if (system_clock().now_us() - noted_at_us_ >= kNoteCostsEveryUs) note_costs();
  return durable;
}

// Advice only: where it cannot be written the next process begins with what there is.
void EngineImpl::note_costs() {
  if (!scheduler_ || !keeps_costs()) return;
  CostNote note = scheduler_->costs();
  if (note.observations <= noted_computes_) return;
  note.context_tokens = context_tokens_;
  note.unix_us = system_clock().unix_us();
  static_cast<void>(write_cost_note(options_.store_path, identity_.name_space, note));
  noted_computes_ = note.observations;
  noted_at_us_ = system_clock().now_us();
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(const EngineOptions& options) {
  auto engine = std::make_unique<EngineImpl>(options);
  EMBER_TRY(engine->open());
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace ember
