// The parts of an engine, put together by hand.
#include "tests/engine/runtime/sim_scheduler.h"

#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "base/prng.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/identity.h"
#include "tests/support/rig.h"

namespace ember::testing {
namespace {

template <typename T>
T must(Result<T> result) {
  if (!result.ok()) ADD_FAILURE() << result.error().message;
  return std::move(result).value();
}

}  // namespace

bool every_mix() { return std::getenv("EMBER_SCHEDULES") != nullptr; }

uint64_t seeds(uint64_t few) {
  const char* asked = std::getenv("EMBER_SCHEDULES");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : few;
}

SimScheduler::SimScheduler(const SimSchedulerOptions& options) {
  device_ = options.sim_seed != 0 ? make_sim_device(options.sim_seed)
                                  : make_cpu_device({.workers = options.workers});
  const ModelConfig config = must(load_model_config(tiny_model_path()));
  weights_ = must(load_weights(must(Checkpoint::open(tiny_model_path())), config, DType::kBf16,
                               *device_, {}));
  layout_ = model_kv_layout(config, DType::kBf16, kDefaultBlockTokens, options.layers_per_group);
  BlockCacheOptions cache;
  cache.store_path = "memory";
  cache.layout = layout_;
  cache.clock = options.scheduler.clock;
  cache.numerics_build = 7;
  RamPlan plan;
  plan.device_slots = options.device_slots;
  plan.host_slots = options.host_slots;
  StoreParts parts;
  parts.disk = open_memory_disk(store_);
  parts.conversations = open_memory_conversations(store_);
  parts.plan.blocks_bytes = store_.limit_bytes;
  parts.plan.tails_bytes = 1u << 20;
  parts.writable = true;
  cache_ = must(BlockCacheImpl::make(cache, {}, plan, std::move(parts), *device_));

  const SchedulerOptions& scheduler = options.scheduler;
  ForwardOptions forward;
  forward.attention = attention_form(scheduler.attention, 0, true);
  forward.both_forms = scheduler.attention == AttentionMode::kAuto;
  forward.max_sequences = scheduler.limits.max_running;
  forward.max_rows = scheduler.chunk_tokens + scheduler.limits.max_running;
  forward.max_logit_rows = scheduler.limits.max_running;
  forward.max_blocks = (scheduler.context_tokens + kDefaultBlockTokens - 1) / kDefaultBlockTokens;
  forward.max_positions = scheduler.context_tokens;
  if (options.layer_times) {
    forward.clock = scheduler.clock != nullptr ? scheduler.clock : &system_clock();
  }
  std::vector<LatentCacheView> views;
  for (uint32_t layer = 0; layer < layout_.layers(); ++layer) {
    views.push_back(cache_->layer_view(layer));
  }
  forward_ =
      must(Forward::create(*weights_, forward, std::move(views), config.vocab_size, *device_));
  scheduler_ = Scheduler::create(*device_, *cache_, *forward_, scheduler);
}

SimScheduler::~SimScheduler() {
  scheduler_.reset();
  forward_.reset();
  cache_.reset();
}

uint64_t SimScheduler::submit(Request request) {
  const uint64_t id = ++submitted_;
  request.on_done = [this, id, client = std::move(request.on_done)](const Outcome& outcome) {
    EXPECT_FALSE(outcomes_.contains(id)) << "answered twice";
    outcomes_[id] = outcome;
    if (client) client(outcome);
  };
  const uint64_t given = must(scheduler_->submit(std::move(request)));
  EXPECT_EQ(given, id);
  return id;
}

Outcome SimScheduler::run(Request request) {
  const uint64_t id = submit(std::move(request));
  scheduler_->run_until([&] { return done(id); });
  return outcomes_.at(id);
}

void SimScheduler::run_all() {
  scheduler_->run_until([&] { return outcomes_.size() == submitted_; });
}

void SimScheduler::sync() {
  if (const Ticket ticket = cache_->sync()) {
    const auto outcome = scheduler_->follow(ticket);
    EXPECT_TRUE(scheduler_->wait_for(*outcome, 60'000'000));
  }
}

void SimScheduler::drop_ram() {
  sync();
  while (scheduler_->tick(system_clock().now_us() + 1000)) {  // what is done lets its slots go
  }
  cache_->drop_tier(Tier::kDevice);
  cache_->drop_tier(Tier::kHost);
}

std::map<BlockHash, std::vector<std::string>> SimScheduler::stored() const {
  std::map<BlockHash, std::vector<std::string>> stored;
  for (const auto* records : {&store_.blocks, &store_.tails}) {
    for (const auto& [hash, block] : *records) stored[hash] = block.payloads;
  }
  return stored;
}

std::vector<TokenId> answer_alone(const Request& request) {
  SimScheduler sim({});
  return sim.run(request).token_ids;
}

Request sim_request(size_t prompt_tokens, uint64_t seed, uint32_t max_tokens,
                    const std::string& tenant) {
  Prng prng(seed);
  Request request;
  for (size_t i = 0; i < prompt_tokens; ++i) {
    request.prompt.push_back(static_cast<TokenId>(2 + prng.below(300)));
  }
  request.max_tokens = max_tokens;
  request.temperature = 1;
  request.seed = seed;
  request.scope.tenant = tenant;
  return request;
}

}  // namespace ember::testing
