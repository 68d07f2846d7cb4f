// Kernel bench: the CPU operations, each with its share of a peak measured in the same run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/prng.h"
#include "bench/kernel_peak.h"
#include "kernels/device.h"

namespace ember {
namespace {

double seconds_since(int64_t start_us) {
  return static_cast<double>(system_clock().now_us() - start_us) * 1e-6;
}

// Best of several tries of `run`, in seconds.
template <class F>
double best_seconds(F run, int tries = 5) {
  double best = 1e9;
  for (int i = 0; i < tries; ++i) {
    const int64_t start = system_clock().now_us();
    run();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

// Runs `work(rank)` on n threads at once.
template <class F>
void on_threads(int n, F work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back([&, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

struct Peaks {
  double gflops = 0;
  double gbytes = 0;
};

Peaks measure_peaks(int threads) {
  constexpr size_t kRounds = 1'000'000;
  constexpr size_t kFloats = size_t{16} << 20;
  const auto n = static_cast<size_t>(threads);
  const std::vector<float> memory(kFloats * n, 1.0f);
  std::vector<float> sinks(n * 16);
  double flop = 0;
  const double fma_s = best_seconds([&] {
    std::vector<double> done(n);
    on_threads(threads, [&](int i) {
      const auto at = static_cast<size_t>(i);
      done[at] = run_fma(kRounds, &sinks[at * 16]);
    });
    flop = 0;
    for (const double d : done) flop += d;
  }, 60);
  const double read_s = best_seconds([&] {
    on_threads(threads, [&](int i) {
      const auto at = static_cast<size_t>(i);
      sinks[at * 16] += read_all(memory.data() + at * kFloats, kFloats);
    });
  }, 20);
  return {flop / fma_s * 1e-9, static_cast<double>(memory.size() * 4) / read_s * 1e-9};
}

class Bench {
 public:
  explicit Bench(int workers) : device_(make_cpu_device({workers, 1, true})) {
    peaks_ = measure_peaks(device_->worker_count());
    std::printf("\n%s, %d worker%s: peak %.1f GFLOP/s (fp32 fma), memory read %.1f GB/s\n",
                device_->kernel_family().c_str(), workers, workers == 1 ? "" : "s", peaks_.gflops,
                peaks_.gbytes);
  }

  void matmuls() {
    struct Shape {
      const char* name;
      size_t n, k;
    };
    const Shape shapes[] = {{"demo q_b", 512, 128},      {"demo dense up", 768, 256},
                            {"demo lm_head", 4096, 256}, {"V2-Lite q", 3072, 2048},
                            {"V2-Lite kv_a", 576, 2048}, {"V2-Lite o", 2048, 2048},
                            {"V2-Lite up", 10944, 2048}, {"V2-Lite down", 2048, 10944}};
    std::printf("%-16s %6s %6s %5s %10s %9s %7s %9s %7s\n", "matmul bf16", "n", "k", "rows", "us",
                "GFLOP/s", "peak %", "w GB/s", "mem %");
    for (const Shape& s : shapes) {
      for (const size_t rows : {size_t{1}, size_t{4}, size_t{64}, size_t{256}}) {
        matmul(s.name, s.n, s.k, rows);
      }
    }
  }

  void attentions() {
    std::printf("%-22s %5s %6s %10s %9s %7s\n", "attention bf16", "rows", "keys", "us", "GFLOP/s",
                "peak %");
    for (const size_t rows : {size_t{1}, size_t{64}, size_t{256}}) {
      for (const size_t keys : {size_t{512}, size_t{2048}, size_t{4096}}) {
        attention("demo absorb", AttentionForm::kAbsorb, {8, 32, 32, 32, 128}, rows, keys);
        attention("V2-Lite absorb", AttentionForm::kAbsorb, {16, 128, 64, 128, 512}, rows, keys);
        attention("V2-Lite naive", AttentionForm::kNaive, {16, 128, 64, 128, 512}, rows, keys);
      }
    }
  }

  void experts() {
    std::printf("%-16s %5s %10s %9s %7s\n", "expert_ffn bf16", "rows", "us", "GFLOP/s", "peak %");
    for (const size_t rows : {size_t{1}, size_t{64}, size_t{256}}) {
      expert("demo", 256, 128, 8, 2, rows);
      expert("V2-Lite / 4", 2048, 1408, 16, 6, rows);
    }
  }

  void dispatch() {
    std::vector<float> h(16), x(16);
    Program program;
    constexpr size_t kOps = 2000;
    for (size_t i = 0; i < kOps; ++i) {
      program.add(ResidualAddParams{16, h.data(), x.data(), DType::kF32});
    }
    const double s = best_seconds([&] { run(program); }, 20);
    Program empty;
    const double submit_s = best_seconds([&] { run(empty); }, 200);
    std::printf("dispatch and barrier %.2f us an operation; submit to completion %.1f us\n",
                s * 1e6 / kOps, submit_s * 1e6);
  }

 private:
  struct Heads {
    size_t heads, nope, rope, value, latent;
  };

  void run(const Program& program) {
    Completion done[1];
    const Ticket ticket = device_->submit(program);
    while (device_->wait_any(system_clock().now_us() + 60'000'000, done) == 0) {
    }
    if (done[0].ticket != ticket || !done[0].status.ok()) std::abort();
  }

  std::vector<bf16> values(size_t count) {
    std::vector<bf16> v(count);
    for (bf16& x : v) x = to_bf16(static_cast<float>(random_.uniform() - 0.5));
    return v;
  }

  // Enough copies of the operation to fill about a hundredth of a second; best seconds of one.
  double time_op(const Op& op, double flop) {
    Program program;
    const auto copies = static_cast<size_t>(std::clamp(1e-2 * 30e9 / flop, 1.0, 400.0));
    for (size_t i = 0; i < copies; ++i) program.add(op);
    run(program);
    return best_seconds([&] { run(program); }, 4) / static_cast<double>(copies);
  }

  void matmul(const char* name, size_t n, size_t k, size_t rows) {
    const std::vector<bf16> x = values(rows * k);
    const std::vector<bf16> w = values(n * k);
    std::vector<bf16> y(rows * n);
    MatmulParams p;
    p.rows = rows;
    p.n = n;
    p.k = k;
    p.x = x.data();
    p.x_stride = k;
    p.w = w.data();
    p.y = y.data();
    p.y_stride = n;
    const double flop = 2.0 * static_cast<double>(rows * n * k);
    const double s = time_op(p, flop);
    const double gflops = flop / s * 1e-9;
    const double gbytes = static_cast<double>(n * k * 2) / s * 1e-9;
    std::printf("%-16s %6zu %6zu %5zu %10.1f %9.1f %6.0f%% %9.1f %6.0f%%\n", name, n, k, rows,
                s * 1e6, gflops, 100 * gflops / peaks_.gflops, gbytes,
                100 * gbytes / peaks_.gbytes);
  }

  void attention(const char* name, AttentionForm form, Heads h, size_t rows, size_t keys) {
    if (rows > keys) return;
    const size_t width = h.latent + h.rope;
    const std::vector<bf16> pool = values(keys * width);
    const std::vector<bf16> q = values(rows * h.heads * (h.nope + h.rope));
    const std::vector<bf16> q_latent = values(rows * h.heads * h.latent);
    const std::vector<bf16> w = values(h.heads * (h.nope + h.value) * h.latent);
    std::vector<bf16> out(rows * h.heads * std::max(h.latent, h.value));
    std::vector<int32_t> table(keys / 64 + 1), positions(rows), sequences(rows, 0);
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(i);
    double seen = 0;
    for (size_t i = 0; i < rows; ++i) {
      positions[i] = static_cast<int32_t>(keys - rows + i);
      seen += static_cast<double>(positions[i] + 1);
    }
    LatentAttentionParams p;
    p.form = form;
    p.rows = rows;
    p.heads = h.heads;
    p.nope_dim = h.nope;
    p.rope_dim = h.rope;
    p.value_dim = h.value;
    p.latent_dim = h.latent;
    p.scale = 0.05f;
    p.q_latent = q_latent.data();
    p.q = q.data();
    p.w_kv_b = w.data();
    p.positions = positions.data();
    p.sequences = sequences.data();
    p.cache.pool = reinterpret_cast<std::byte*>(const_cast<bf16*>(pool.data()));
    p.cache.row_bytes = width * 2;
    p.cache.slot_bytes = width * 2 * 64;
    p.cache.block_tables = table.data();
    p.cache.table_stride = table.size();
    p.out = out.data();
    const bool absorb = form == AttentionForm::kAbsorb;
    const size_t pair_flop = 2 * (absorb ? 2 * h.latent + h.rope : h.nope + h.rope + h.value);
    const size_t expand_flop = absorb ? 0 : 2 * h.heads * (h.nope + h.value) * h.latent;
    const double flop = seen * static_cast<double>(h.heads * pair_flop) +
                        static_cast<double>(keys * expand_flop);
    const double s = time_op(p, flop);
    const double gflops = flop / s * 1e-9;
    std::printf("%-22s %5zu %6zu %10.1f %9.1f %6.0f%%\n", name, rows, keys, s * 1e6, gflops,
                100 * gflops / peaks_.gflops);
  }

  void expert(const char* name, size_t d, size_t m, size_t experts, size_t top_k, size_t rows) {
    const std::vector<bf16> x = values(rows * d);
    const std::vector<bf16> w = values(experts * 3 * m * d);
    std::vector<ExpertWeights> weights(experts);
    for (size_t e = 0; e < experts; ++e) {
      const bf16* base = w.data() + e * 3 * m * d;
      weights[e] = {base, base + m * d, base + 2 * m * d};
    }
    std::vector<int32_t> ids(rows * top_k);
    const std::vector<float> route(rows * top_k, 0.3f);
    for (size_t r = 0; r < rows; ++r) {
      const size_t first = random_.below(experts - top_k + 1);
      for (size_t j = 0; j < top_k; ++j) ids[r * top_k + j] = static_cast<int32_t>(first + j);
    }
    std::vector<bf16> y(rows * d);
    ExpertFfnParams p;
    p.rows = rows;
    p.width = d;
    p.inner = m;
    p.experts = experts;
    p.top_k = top_k;
    p.x = x.data();
    p.weights = weights.data();
    p.ids = ids.data();
    p.route_weights = route.data();
    p.y = y.data();
    std::vector<std::byte> workspace(expert_ffn_workspace_bytes(p));
    p.workspace = workspace.data();
    const double flop = 6.0 * static_cast<double>(rows * top_k * d * m);
    const double s = time_op(p, flop);
    const double gflops = flop / s * 1e-9;
    std::printf("%-16s %5zu %10.1f %9.1f %6.0f%%\n", name, rows, s * 1e6, gflops,
                100 * gflops / peaks_.gflops);
  }

  std::unique_ptr<Device> device_;
  Prng random_{1};
  Peaks peaks_;
};

}  // namespace
}  // namespace ember

// kernel_bench [WORKERS...]: default 1 and all cores.
int main(int argc, char** argv) {
  std::vector<int> teams;
  for (int i = 1; i < argc; ++i) teams.push_back(std::atoi(argv[i]));
  if (teams.empty()) {
    const int all = ember::make_cpu_device({})->worker_count();
    teams = all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
  }
  for (const int workers : teams) {
    ember::Bench bench(workers);
    bench.dispatch();
    bench.matmuls();
    bench.attentions();
    bench.experts();
  }
  return 0;
}
