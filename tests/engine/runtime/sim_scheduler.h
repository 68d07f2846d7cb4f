// Sim scheduler: a scheduler on a small random model, a cache of a chosen number of slots and a
// store in memory; on a simulated device by default, so that a seed makes the order of events.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/forward.h"
#include "engine/model/weights.h"
#include "engine/runtime/scheduler.h"
#include "kernels/device.h"
#include "store/cache/block_cache_impl.h"
#include "tests/store/cache/memory_store.h"

namespace ember::testing {

// EMBER_SCHEDULES: how many seeds a test goes through, and every mix in place of a few; `few` and
// false without it.
uint64_t seeds(uint64_t few);
bool every_mix();

// No token ends an answer, every known token is restored.
inline SchedulerOptions sim_options() {
  SchedulerOptions options;
  options.context_tokens = 512;
  options.restore = RestorePolicy::kAlways;
  return options;
}

struct SimSchedulerOptions {
  uint64_t sim_seed = 1;  // 0: on the CPU device
  int workers = 1;        // of the CPU device
  uint32_t layers_per_group = 1;
  uint32_t device_slots = 32;
  uint32_t host_slots = 32;
  bool layer_times = false;
  SchedulerOptions scheduler = sim_options();
};

class SimScheduler {
 public:
  explicit SimScheduler(const SimSchedulerOptions& options);
  ~SimScheduler();

  Scheduler& scheduler() { return *scheduler_; }
  BlockCacheImpl& cache() { return *cache_; }
  MemoryStore& store() { return store_; }
  const ModelConfig& config() const { return weights_->config; }

  // Submits it; its outcome is in outcomes() under the returned number once it is done.
  uint64_t submit(Request request);
  const std::map<uint64_t, Outcome>& outcomes() const { return outcomes_; }
  bool done(uint64_t id) const { return outcomes_.contains(id); }
  Outcome run(Request request);
  void run_all();  // until every submitted request is done
  void sync();     // until all that was committed is in the store
  // Leaves what is on the disk only.
  void drop_ram();

  // The stored payloads of every block and tail, by hash.
  std::map<BlockHash, std::vector<std::string>> stored() const;

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<ModelWeights> weights_;
  KvLayout layout_;
  MemoryStore store_;
  std::unique_ptr<BlockCacheImpl> cache_;
  std::unique_ptr<Forward> forward_;
  std::unique_ptr<Scheduler> scheduler_;
  std::map<uint64_t, Outcome> outcomes_;
  size_t submitted_ = 0;
};

// Random prompt; drawn at temperature 1, so that any other bit of the logits soon shows.
Request sim_request(size_t prompt_tokens, uint64_t seed, uint32_t max_tokens,
                    const std::string& tenant = "");

// What the request draws where nothing else runs and nothing is known.
std::vector<TokenId> answer_alone(const Request& request);

}  // namespace ember::testing
