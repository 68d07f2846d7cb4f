// Codec bench: how small and how fast each candidate codes latents, real and made.
//
// Usage: codec_bench [--markdown] [--megabytes N]    from the repository's root
#include <ctime>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "bench/codec_candidates.h"
#include "bench/latent_samples.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

constexpr int kPasses = 5;

// CPU time of this thread: on a machine that others use too, wall time says little.
double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <typename Pass>
double median_seconds(Pass&& pass) {
  std::vector<double> times;
  for (int i = 0; i < kPasses; ++i) {
    const double start = cpu_seconds();
    pass();
    times.push_back(cpu_seconds() - start);
  }
  std::nth_element(times.begin(), times.begin() + kPasses / 2, times.end());
  return times[kPasses / 2];
}

double entropy_bits(const std::vector<size_t>& counts) {
  double all = 0;
  double bits = 0;
  for (size_t count : counts) all += static_cast<double>(count);
  for (size_t count : counts) {
    if (count > 0) bits -= static_cast<double>(count) * std::log2(static_cast<double>(count) / all);
  }
  return bits;
}

// What an order-0 coder could reach: bits of a value.
struct Bounds {
  double parts = 0;     // exponents of the latent and of the RoPE part apart, the rest as it is
  double channels = 0;  // each channel of each layer apart
};

Bounds bounds_of(const LatentSample& sample) {
  std::map<size_t, std::vector<size_t>> parts;
  std::map<size_t, std::vector<size_t>> channels;
  size_t values = 0;
  const size_t layer_values = size_t{sample.row_values} * sample.tokens;
  for (const auto& group : sample.groups) {
    const bool halves = sample.dtype == DType::kBf16;
    const size_t count = halves ? group.size() / 2 : group.size();
    for (size_t i = 0; i < count; ++i, ++values) {
      const size_t symbol = halves ? load_unaligned<uint16_t>(group.data() + 2 * i) >> 7 & 0xff
                                   : static_cast<size_t>(group[i]);
      const size_t channel = i % sample.row_values;
      for (auto& [table, key] : {std::pair{&parts, size_t{channel < sample.latent_values}},
                                 std::pair{&channels, i / layer_values * sample.row_values +
                                                          channel}}) {
        auto& counts = (*table)[key];
        counts.resize(256);
        ++counts[symbol];
      }
    }
  }
  const auto mean = [&](const auto& table) {
    double bits = 0;
    for (const auto& [key, counts] : table) bits += entropy_bits(counts);
    return bits / static_cast<double>(values) + (sample.dtype == DType::kBf16 ? 8 : 0);
  };
  return {mean(parts), mean(channels)};
}

struct Row {
  std::string name;
  double ratio = 0;
  double encode_gb_s = 0;
  double decode_gb_s = 0;
};

// Every group again and again until the pass is larger than the caches.
Row measure(const CodecCandidate& candidate, const LatentSample& sample, size_t pass_bytes) {
  const GroupShape shape = {sample.dtype, sample.row_values, sample.tokens};
  const size_t repeats = std::max<size_t>(1, pass_bytes / sample.raw_bytes());
  std::vector<std::vector<std::byte>> raw;
  for (size_t r = 0; r < repeats; ++r) {
    raw.insert(raw.end(), sample.groups.begin(), sample.groups.end());
  }
  std::vector<std::string> payloads(raw.size());
  std::vector<std::vector<std::byte>> back = raw;
  Row row;
  row.name = candidate.name;
  const double bytes = static_cast<double>(repeats * sample.raw_bytes());
  const double encode_s = median_seconds([&] {
    for (size_t i = 0; i < raw.size(); ++i) payloads[i] = candidate.encode(shape, raw[i]);
  });
  bool whole = true;
  const double decode_s = median_seconds([&] {
    for (size_t i = 0; i < raw.size(); ++i) {
      whole = candidate.decode(shape, payloads[i], back[i]) && whole;
    }
  });
  if (!whole || back != raw) {
    std::fprintf(stderr, "codec_bench: %s does not come back\n", candidate.name.c_str());
    std::exit(1);
  }
  double stored = 0;
  for (const std::string& payload : payloads) stored += static_cast<double>(payload.size());
  row.ratio = bytes / stored;
  row.encode_gb_s = bytes / encode_s / 1e9;
  row.decode_gb_s = bytes / decode_s / 1e9;
  return row;
}

double memcpy_gb_s(size_t bytes) {
  std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  const double seconds = median_seconds([&] { std::memcpy(to.data(), from.data(), bytes); });
  return static_cast<double>(bytes) / seconds / 1e9;
}

void bench(const LatentSample& sample, size_t pass_bytes, bool markdown) {
  const Bounds bounds = bounds_of(sample);
  const double width = sample.dtype == DType::kBf16 ? 16 : 8;
  const double bound = width / bounds.parts;
  const char* head = markdown ? "\n### %s\n\n" : "\n%s\n";
  std::printf(head, sample.name.c_str());
  std::printf("%zu groups of %zu bytes, %u tokens of %u values; order-0 bound %.3f (latent and RoPE"
              " part apart), %.3f with each channel's own statistics; memcpy %.1f GB/s.\n",
              sample.groups.size(), sample.groups[0].size(), sample.tokens, sample.row_values,
              bound, width / bounds.channels, memcpy_gb_s(pass_bytes));
  std::printf(markdown ? "\n| codec | ratio | of the bound | encode GB/s | decode GB/s |\n"
                         "|---|---|---|---|---|\n"
                       : "%-56s %6s %8s %8s %8s\n",
              "codec", "ratio", "of bound", "encode", "decode");
  for (const CodecCandidate& candidate : codec_candidates()) {
    if (sample.dtype != DType::kBf16 && !candidate.any_bytes) continue;
    const Row row = measure(candidate, sample, pass_bytes);
    std::printf(markdown ? "| %s | %.3f | %.1f %% | %.2f | %.2f |\n"
                         : "%-56s %6.3f %6.1f %% %8.2f %8.2f\n",
                row.name.c_str(), row.ratio, 100 * row.ratio / bound, row.encode_gb_s,
                row.decode_gb_s);
    std::fflush(stdout);
  }
}

// The first tokens of every block: what a tail holds.
LatentSample cut(const LatentSample& sample, uint32_t tokens) {
  LatentSample tails = sample;
  tails.name = sample.name + ", tails of " + std::to_string(tokens) + " tokens";
  tails.tokens = tokens;
  const size_t row_bytes = 2 * sample.row_values;
  for (auto& group : tails.groups) {
    std::vector<std::byte> rows;
    for (size_t row = 0; row < group.size() / row_bytes; ++row) {
      if (row % sample.tokens >= tokens) continue;
      const auto at = group.begin() + static_cast<std::ptrdiff_t>(row * row_bytes);
      rows.insert(rows.end(), at, at + static_cast<std::ptrdiff_t>(row_bytes));
    }
    group = std::move(rows);
  }
  return tails;
}

int run(size_t pass_bytes, bool markdown) {
  const TempFolder folder;
  std::stringstream text;
  text << std::ifstream("models/demo/handbook.txt").rdbuf();
  Result<LatentSample> demo = model_latents("models/demo", text.str(), 0, folder / "demo");
  Result<LatentSample> random =
      random_v2_lite_latents("configs/v2_lite_two_layers", folder / "random");
  for (const Result<LatentSample>* sample : {&demo, &random}) {
    if (sample->ok()) continue;
    std::fprintf(stderr, "codec_bench: %s\n", sample->error().message.c_str());
    return 1;
  }
  demo->name = "demo model, its handbook";
  bench(*demo, pass_bytes, markdown);
  bench(cut(*demo, 20), pass_bytes, markdown);
  bench(cut(*demo, 5), pass_bytes, markdown);
  bench(*random, pass_bytes, markdown);
  bench(synthetic_latents(SyntheticLatents::kLogNormalChannels, 4, 7, 1), pass_bytes, markdown);
  bench(synthetic_latents(SyntheticLatents::kHeavyTails, 4, 7, 2), pass_bytes, markdown);
  bench(synthetic_latents(SyntheticLatents::kFp8Rows, 4, 7, 3), pass_bytes, markdown);
  return 0;
}

}  // namespace
}  // namespace ember

int main(int argc, char** argv) {
  bool markdown = false;
  size_t megabytes = 32;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--markdown") {
      markdown = true;
    } else if (flag == "--megabytes" && i + 1 < argc) {
      megabytes = std::max<size_t>(1, std::strtoull(argv[++i], nullptr, 10));
    } else {
      std::fprintf(stderr, "usage: codec_bench [--markdown] [--megabytes N]\n");
      return 2;
    }
  }
  return ember::run(megabytes << 20, markdown);
}
