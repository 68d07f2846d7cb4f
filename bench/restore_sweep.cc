// Restore sweep: time to the first token of a prompt that is computed, against one that is known,
// by its length and by the tier that has it. A table, and a plot of the same.
//
// Usage: restore_sweep [MODEL_FOLDER [PLOT.svg]]    (the demo model by default, no plot)
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/prng.h"
#include "tools/plot/line_plot.h"
#include "engine/runtime/engine.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

constexpr size_t kLeast = 32;
constexpr int kRuns = 5;  // of each point; the median counts

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "restore_sweep: %s\n", message.c_str());
  std::exit(1);
}

std::unique_ptr<Engine> open_engine(const std::string& model, const std::string& store) {
  EngineOptions options;
  options.model_path = model;
  options.store_path = store;
  options.ram_bytes = uint64_t{1} << 30;
  options.disk_bytes = uint64_t{4} << 30;
  options.need_tokenizer = false;
  options.restore = RestorePolicy::kAlways;
  auto engine = Engine::open(options);
  if (!engine.ok()) fail(engine.error().message);
  return std::move(engine).value();
}

double first_token_ms(Engine& engine, const std::vector<TokenId>& prompt, bool use_cache,
                      size_t expect_restored) {
  Request request;
  request.prompt = prompt;
  request.max_tokens = 1;
  request.use_cache = use_cache;
  const Outcome outcome = engine.run(std::move(request));
  if (!outcome.status.ok()) fail(outcome.status.error().message);
  if (outcome.restore.total() < expect_restored) fail("a known prompt was computed again");
  return static_cast<double>(outcome.ttft.total_us()) / 1e3;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kRuns / 2, values.end());
  return values[kRuns / 2];
}

struct Point {
  double computed_ms = 0, disk_ms = 0, host_ms = 0, device_ms = 0;
};

Point measure(Engine& engine, size_t tokens) {
  std::array<std::vector<double>, 4> runs;
  for (int run = 0; run < kRuns; ++run) {
    Prng prng(tokens * 100 + static_cast<uint64_t>(run));
    std::vector<TokenId> prompt(tokens);
    for (TokenId& id : prompt) id = static_cast<TokenId>(prng.below(engine.config().vocab_size));
    BlockCache& cache = engine.cache();
    runs[0].push_back(first_token_ms(engine, prompt, false, 0));
    first_token_ms(engine, prompt, true, 0);
    if (!engine.make_durable()) fail("the prompt could not be stored");
    cache.drop_tier(Tier::kDevice);
    cache.drop_tier(Tier::kHost);
    runs[1].push_back(first_token_ms(engine, prompt, true, tokens - 1));
    cache.drop_tier(Tier::kDevice);
    runs[2].push_back(first_token_ms(engine, prompt, true, tokens - 1));
    runs[3].push_back(first_token_ms(engine, prompt, true, tokens - 1));
  }
  return {median(runs[0]), median(runs[1]), median(runs[2]), median(runs[3])};
}

}  // namespace
}  // namespace ember

int main(int argc, char** argv) {
  using namespace ember;
  const std::string model = argc > 1 ? argv[1] : "models/demo";
  const TempFolder folder;
  const auto engine = open_engine(model, folder / "store");
  LinePlot plot("Time to the first token, by the prompt's length", "prompt tokens",
                "milliseconds", {"computed", "from disk", "from host", "on the device"});
  std::printf("%8s %12s %12s %12s %12s %16s\n", "tokens", "computed ms", "disk ms", "host ms",
              "device ms", "computed/disk");
  const size_t most = static_cast<size_t>(engine->context_tokens()) - 2;
  for (size_t tokens = kLeast;; tokens = std::min(tokens * 2, most)) {
    const Point point = measure(*engine, tokens);
    std::printf("%8zu %12.2f %12.2f %12.2f %12.2f %16.1f\n", tokens, point.computed_ms,
                point.disk_ms, point.host_ms, point.device_ms, point.computed_ms / point.disk_ms);
    std::fflush(stdout);
    plot.add(static_cast<double>(tokens),
             {point.computed_ms, point.disk_ms, point.host_ms, point.device_ms});
    if (tokens >= most) break;
  }
  if (argc > 2) std::ofstream(argv[2]) << plot.svg();
  return 0;
}
