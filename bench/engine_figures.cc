// Runs the prompt cold with a time for each chunk, drops tiers, restores its front, and decodes.
#include "bench/engine_figures.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/prng.h"
#include "bench/peaks.h"
#include "engine/runtime/engine.h"
#include "tests/support/allocation_counter.h"

namespace ember {
namespace {

constexpr uint64_t kRamBytes = uint64_t{512} << 20;
constexpr size_t kShortPrompt = 60;
constexpr uint32_t kWarmSteps = 8;
constexpr uint32_t kSteadySteps = 64;
constexpr int kRestores = 5;  // the median counts

double seconds_of(int64_t us) { return static_cast<double>(us) * 1e-6; }

class Run {
 public:
  explicit Run(const EngineFiguresOptions& options) : options_(options) {}

  Result<EngineFigures> run() {
    figures_.restored_tokens = options_.restored_tokens;
    figures_.ram_bytes = kRamBytes;
    EMBER_TRY(open(options_.store));
    EMBER_TRY(prefill());
    if (!engine_->make_durable()) return Error{ErrorCode::kIo, "the prompt could not be stored"};
    EMBER_ASSIGN(figures_.disk, restore({Tier::kDevice, Tier::kHost}));
    EMBER_ASSIGN(figures_.host, restore({Tier::kDevice}));
    figures_.anonymous_bytes = anonymous_rss_bytes();
    engine_.reset();
    EMBER_TRY(open(""));
    EMBER_TRY(decode());
    return std::move(figures_);
  }

 private:
  Status open(const std::string& store) {
    EngineOptions options;
    options.model_path = options_.model;
    options.store_path = store;
    options.ram_bytes = kRamBytes;
    options.disk_bytes = uint64_t{1} << 30;
    options.need_tokenizer = false;
    options.attention = options_.attention;
    options.chunk_tokens = options_.chunk_tokens;
    options.restore = RestorePolicy::kAlways;
    options.context_tokens = std::max(options_.lengths.back(), kShortPrompt) + 256;
    EMBER_ASSIGN(const ModelConfig config, load_model_config(options_.model));
    options.context_tokens = std::min<uint64_t>(options.context_tokens, config.max_positions);
    EMBER_ASSIGN(engine_, Engine::open(options));
    return {};
  }

  Request request(size_t tokens, uint32_t max_tokens) const {
    Prng prng(1);
    Request request;
    for (size_t i = 0; i < tokens; ++i) {
      request.prompt.push_back(static_cast<TokenId>(prng.below(engine_->config().vocab_size)));
    }
    request.max_tokens = max_tokens;
    return request;
  }

  Result<Outcome> outcome_of(Request request) {
    Outcome outcome = engine_->run(std::move(request));
    if (!outcome.status.ok()) return outcome.status.error();
    return outcome;
  }

  // One prompt gives the times of all lengths: what is computed for a token depends on none after.
  Status prefill() {
    Request prompt = request(options_.lengths.back(), 1);
    const int64_t start = system_clock().now_us();
    prompt.on_prefill = [&](size_t computed, size_t) {
      const double seconds = seconds_of(system_clock().now_us() - start);
      const auto at = std::lower_bound(options_.lengths.begin(), options_.lengths.end(), computed);
      if (at != options_.lengths.end() && *at == computed) {
        figures_.prefill.push_back({computed, seconds});
      }
      if (computed <= options_.restored_tokens || figures_.restored_computed_s == 0) {
        figures_.restored_computed_s = seconds;
      }
    };
    EMBER_ASSIGN([[maybe_unused]] const Outcome cold, outcome_of(std::move(prompt)));
    return {};
  }

  Result<EngineFigures::Restore> restore(const std::vector<Tier>& lost) {
    std::vector<EngineFigures::Restore> runs;
    figures_.restored_bytes = options_.restored_tokens * engine_->cache().layout().token_bytes();
    for (int i = 0; i < kRestores; ++i) {
      for (const Tier tier : lost) engine_->cache().drop_tier(tier);
      EMBER_ASSIGN(const Outcome warm, outcome_of(request(options_.restored_tokens + 1, 1)));
      if (warm.restore.total() < options_.restored_tokens) {
        return Error{ErrorCode::kIo, "a known prompt was computed again"};
      }
      runs.push_back({seconds_of(warm.ttft.match_us + warm.ttft.restore_us),
                      seconds_of(warm.ttft.total_us())});
    }
    std::sort(runs.begin(), runs.end(),
              [](const auto& a, const auto& b) { return a.ready_s < b.ready_s; });
    return runs[kRestores / 2];
  }

  Status decode() {
    uint32_t drawn = 0;
    uint64_t last_count = 0;
    int64_t start = 0;
    int64_t end = 0;
    Request prompt = request(kShortPrompt, kWarmSteps + kSteadySteps);
    prompt.on_token = [&](TokenId) {
      const uint64_t in_step = allocations_of_this_thread() - last_count;
      if (++drawn > kWarmSteps && in_step > 0) ++figures_.allocating_steps;
      if (drawn == kWarmSteps) start = system_clock().now_us();
      end = system_clock().now_us();
      last_count = allocations_of_this_thread();
    };
    EMBER_ASSIGN([[maybe_unused]] const Outcome outcome, outcome_of(std::move(prompt)));
    if (drawn <= kWarmSteps) {
      return {ErrorCode::kUnsupported, "the model ended its answer early; no decode to measure"};
    }
    figures_.steps = drawn - kWarmSteps;
    figures_.decode_s = seconds_of(end - start) / figures_.steps;
    figures_.read_bytes_per_s = measure_read_bytes_per_s(engine_->device().worker_count());
    figures_.decode_position = kShortPrompt + kWarmSteps + figures_.steps / 2;
    return {};
  }

  const EngineFiguresOptions& options_;
  std::unique_ptr<Engine> engine_;
  EngineFigures figures_;
};

}  // namespace

Result<EngineFigures> measure_engine(const EngineFiguresOptions& options) {
  return Run(options).run();
}

}  // namespace ember
