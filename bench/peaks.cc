// Peaks of the machine, by the simplest loops that reach them.
#include "bench/peaks.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "bench/kernel_peak.h"

namespace ember {
namespace {

constexpr size_t kBufferBytes = size_t{128} << 20;
constexpr int kRepeats = 10;

template <typename F>
double best_bytes_per_s(F&& pass) {
  double best = 0;
  for (int i = 0; i < kRepeats; ++i) {
    const int64_t start_us = system_clock().now_us();
    pass();
    const auto us = static_cast<double>(std::max<int64_t>(system_clock().now_us() - start_us, 1));
    best = std::max(best, static_cast<double>(kBufferBytes) / us * 1e6);
  }
  return best;
}

}  // namespace

double measure_read_bytes_per_s(int threads) {
  const auto count = static_cast<size_t>(threads);
  const std::vector<float> buffer(count * kBufferBytes / sizeof(float), 3.0f);
  const size_t share = kBufferBytes / sizeof(float);
  std::vector<float> sums(count * 16);  // a cache line each
  return static_cast<double>(threads) * best_bytes_per_s([&] {
    std::vector<std::thread> team;
    for (size_t i = 0; i < count; ++i) {
      team.emplace_back([&, i] { sums[i * 16] = read_all(buffer.data() + i * share, share); });
    }
    for (std::thread& thread : team) thread.join();
  });
}

uint64_t anonymous_rss_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "RssAnon: %llu kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

}  // namespace ember
