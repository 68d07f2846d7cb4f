// Engine bench: what a warm cache is worth. Prefill against restore from disk, decode against the
// memory bandwidth it needs, allocations of the decode loop, and memory against its budget.
//
// Usage: engine_bench MODEL_FOLDER [TOKENS]    (demo model and 3,000 tokens by default)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/bytes.h"
#include "base/prng.h"
#include "bench/peaks.h"
#include "engine/runtime/engine.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

constexpr uint64_t kRamBytes = uint64_t{512} << 20;
constexpr uint32_t kWarmSteps = 32;
constexpr uint32_t kSteadySteps = 64;

std::unique_ptr<Engine> open_engine(const std::string& model, const std::string& store,
                                    uint64_t disk_bytes) {
  EngineOptions options;
  options.model_path = model;
  options.store_path = store;
  options.ram_bytes = kRamBytes;
  options.disk_bytes = disk_bytes;
  options.need_tokenizer = false;
  auto engine = Engine::open(options);
  if (!engine.ok()) {
    std::fprintf(stderr, "engine_bench: %s\n", engine.error().message.c_str());
    std::exit(1);
  }
  return std::move(engine).value();
}

Outcome must_run(Engine& engine, Request request) {
  Outcome outcome = engine.run(std::move(request));
  if (!outcome.status.ok()) {
    std::fprintf(stderr, "engine_bench: %s\n", outcome.status.error().message.c_str());
    std::exit(1);
  }
  return outcome;
}

double ms(int64_t us) { return static_cast<double>(us) / 1e3; }

struct Prompt {
  std::vector<TokenId> tokens;
  explicit Prompt(const Engine& engine, size_t count) {
    Prng prng(1);
    for (size_t i = 0; i < count; ++i) {
      tokens.push_back(static_cast<TokenId>(prng.below(engine.config().vocab_size)));
    }
  }
  Request request(uint32_t max_tokens) const {
    Request request;
    request.prompt = tokens;
    request.max_tokens = max_tokens;
    return request;
  }
};

// With an engine open: its slots, queues and activations; the mapped weights are not anonymous.
void print_memory(const char* when) {
  std::printf("memory %s: %s anonymous; budget %s and 200 MB\n", when,
              human_bytes(anonymous_rss_bytes()).c_str(), human_bytes(kRamBytes).c_str());
}

// Prefill and restore of the same prompt, each up to the first drawn token.
void bench_restore(const std::string& model, const std::string& store, size_t count) {
  Outcome cold;
  Outcome warm;
  uint64_t bytes = 0;
  {
    auto engine = open_engine(model, store, uint64_t{1} << 30);
    cold = must_run(*engine, Prompt(*engine, count).request(1));
    engine->make_durable();
    bytes = count * engine->cache().layout().token_bytes();
    print_memory("after prefill");
  }
  {
    auto engine = open_engine(model, store, uint64_t{1} << 30);
    warm = must_run(*engine, Prompt(*engine, count).request(1));
    print_memory("after restore");
  }
  const double memcpy_rate = measure_memcpy_bytes_per_s();
  const double restore_rate = static_cast<double>(bytes) /
                              static_cast<double>(std::max<int64_t>(warm.ttft.restore_us, 1)) * 1e6;
  std::printf("first token of %zu tokens, %s of latents\n", count, human_bytes(bytes).c_str());
  std::printf("  computed          %9.1f ms  %8.0f tokens/s\n", ms(cold.ttft.total_us()),
              static_cast<double>(count) / static_cast<double>(cold.ttft.prefill_us) * 1e6);
  std::printf("  restored (disk)   %9.1f ms  of it restore %.1f ms, %.2f GB/s, %.0f %% of memcpy\n",
              ms(warm.ttft.total_us()), ms(warm.ttft.restore_us), restore_rate / 1e9,
              100 * restore_rate / memcpy_rate);
  std::printf("  restored tokens   %9llu      computed %llu\n",
              static_cast<unsigned long long>(warm.restore.total()),
              static_cast<unsigned long long>(warm.computed_tokens));
  std::printf("  restored/computed %9.4f\n", static_cast<double>(warm.ttft.total_us()) /
                                                 static_cast<double>(cold.ttft.total_us()));
}

// Decode after a short prompt: time, bandwidth, and what the engine thread allocates a token.
void bench_decode(const std::string& model) {
  auto engine = open_engine(model, "", 0);
  uint32_t drawn = 0;
  uint64_t last_count = 0;
  uint64_t allocations = 0;
  uint32_t allocating_steps = 0;
  Request request = Prompt(*engine, 60).request(kWarmSteps + kSteadySteps);
  request.on_token = [&](TokenId) {
    const uint64_t in_step = allocations_of_this_thread() - last_count;
    if (++drawn > kWarmSteps && in_step > 0) {
      allocations += in_step;
      ++allocating_steps;
    }
    last_count = allocations_of_this_thread();
  };
  const Outcome outcome = must_run(*engine, std::move(request));
  if (outcome.token_ids.size() < kWarmSteps + kSteadySteps) {
    std::printf("decode: the model ended its answer early; nothing to measure\n");
    return;
  }
  uint64_t weight_bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(model)) {
    if (entry.path().extension() == ".safetensors" &&
        entry.path().filename().string().starts_with("model")) {
      weight_bytes += entry.file_size();
    }
  }
  const double tokens_per_s = static_cast<double>(outcome.token_ids.size() - 1) /
                              static_cast<double>(outcome.decode_us) * 1e6;
  const double read_rate = measure_read_bytes_per_s();
  std::printf(
      "decode  %.1f tokens/s; all weights once a token would be %.2f GB/s, %.0f %% of one"
      " thread's read peak\n",
      tokens_per_s, tokens_per_s * static_cast<double>(weight_bytes) / 1e9,
      100 * tokens_per_s * static_cast<double>(weight_bytes) / read_rate);
  std::printf(
      "decode  %u of %u steady steps allocate nothing on the engine thread; the others (a block is"
      " committed and offloaded) %llu times\n",
      kSteadySteps - allocating_steps, kSteadySteps, static_cast<unsigned long long>(allocations));
}

}  // namespace
}  // namespace ember

int main(int argc, char** argv) {
  const std::string model = argc > 1 ? argv[1] : "models/demo";
  const size_t count = argc > 2 ? static_cast<size_t>(std::atoll(argv[2])) : 3000;
  const ember::TempFolder folder;
  ember::bench_restore(model, folder / "store", count);
  ember::bench_decode(model);
  return 0;
}
