// Peaks of the machine, by the simplest loops that reach them.
#include "bench/peaks.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "base/clock.h"

namespace ember {
namespace {

constexpr size_t kBufferBytes = size_t{128} << 20;
constexpr int kRepeats = 5;

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

double measure_memcpy_bytes_per_s() {
  std::vector<char> from(kBufferBytes, 1);
  std::vector<char> to(kBufferBytes, 2);
  return best_bytes_per_s([&] { std::memcpy(to.data(), from.data(), kBufferBytes); });
}

double measure_read_bytes_per_s() {
  std::vector<uint64_t> buffer(kBufferBytes / sizeof(uint64_t), 3);
  volatile uint64_t sink = 0;
  return best_bytes_per_s([&] {
    uint64_t sums[8] = {};
    for (size_t i = 0; i < buffer.size(); i += 8) {
      for (size_t lane = 0; lane < 8; ++lane) sums[lane] += buffer[i + lane];
    }
    sink = std::accumulate(std::begin(sums), std::end(sums), uint64_t{0});
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
