// Sampling of latents: through the engine and its store, or from distributions.
#include "bench/latent_samples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/prng.h"
#include "engine/runtime/engine.h"
#include "store/disk_tier.h"
#include "tools/make_random_model.h"

namespace ember {
namespace {

constexpr uint32_t kLatentValues = 512;
constexpr uint32_t kRopeValues = 64;
constexpr size_t kFp8RowBytes = 656;  // 512 e4m3, 4 scales in fp32, 64 values of RoPE in bf16
constexpr uint64_t kRamBytes = uint64_t{512} << 20;
constexpr uint64_t kDiskBytes = uint64_t{1} << 30;

EngineOptions options_of(const std::string& model, const std::string& store, bool tokenizer) {
  EngineOptions options;
  options.model_path = model;
  options.store_path = store;
  options.ram_bytes = kRamBytes;
  options.disk_bytes = kDiskBytes;
  options.need_tokenizer = tokenizer;
  return options;
}

// Every group of every full block, in the order of positions.
Status read_groups(const std::string& store, LatentSample& sample) {
  DiskTierOptions disk;
  disk.directory = store + "/blocks";
  disk.block_cache_bytes = 8u << 20;
  disk.read_only = true;
  EMBER_ASSIGN(std::unique_ptr<DiskTier> tier, DiskTier::open(disk));
  EMBER_ASSIGN(DiskTier::Listing listing, tier->list());
  std::sort(listing.records.begin(), listing.records.end(), [](const auto& a, const auto& b) {
    return a.first.position < b.first.position;
  });
  for (const auto& [record, touch] : listing.records) {
    sample.tokens = static_cast<uint32_t>(record.tokens.size());
    for (uint32_t g = 0; g < record.groups.size(); ++g) {
      std::vector<std::byte> raw(record.groups[g].raw_bytes);
      EMBER_TRY(tier->read_group(record, g, raw));
      sample.groups.push_back(std::move(raw));
    }
  }
  return {};
}

double normal(Prng& prng) {
  const double radius = std::sqrt(-2 * std::log(1 - prng.uniform()));
  return radius * std::cos(2 * M_PI * prng.uniform());
}

// A value of Student's t with 3 degrees of freedom: heavy tails.
double student(Prng& prng) {
  double squares = 0;
  for (int i = 0; i < 3; ++i) {
    const double x = normal(prng);
    squares += x * x;
  }
  return normal(prng) / std::sqrt(squares / 3);
}

// e4m3 (bias 7, no infinities) of the nearest value toward zero; enough for a distribution.
uint8_t to_e4m3(double value) {
  const uint8_t sign = value < 0 ? 0x80 : 0;
  const double size = std::min(std::abs(value), 448.0);
  if (size < 0x1p-9) return sign;
  const int exponent = std::max(static_cast<int>(std::floor(std::log2(size))), -6);
  const double steps = std::floor(std::ldexp(size, 3 - exponent));  // below 16
  const double code = exponent == -6 ? steps : (exponent + 7) * 8 + (steps - 8);
  return static_cast<uint8_t>(sign | static_cast<uint8_t>(code));
}

void append_bf16(std::vector<std::byte>& out, double value) {
  const bf16 rounded = to_bf16(static_cast<float>(value));
  const auto* bytes = reinterpret_cast<const std::byte*>(&rounded);
  out.insert(out.end(), bytes, bytes + sizeof rounded);
}

// 128 values share a scale, the largest of them is the largest of e4m3.
void append_fp8_row(std::vector<std::byte>& out, const std::vector<double>& row) {
  std::array<float, kLatentValues / 128> scales;
  for (size_t tile = 0; tile < scales.size(); ++tile) {
    double largest = 1e-30;
    for (size_t i = 0; i < 128; ++i) {
      largest = std::max(largest, std::abs(row[tile * 128 + i]));
    }
    scales[tile] = static_cast<float>(largest / 448);
    for (size_t i = 0; i < 128; ++i) {
      out.push_back(static_cast<std::byte>(
          to_e4m3(row[tile * 128 + i] / static_cast<double>(scales[tile]))));
    }
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(scales.data());
  out.insert(out.end(), bytes, bytes + sizeof scales);
  for (size_t i = kLatentValues; i < row.size(); ++i) append_bf16(out, row[i]);
}

}  // namespace

size_t LatentSample::raw_bytes() const {
  size_t bytes = 0;
  for (const auto& group : groups) bytes += group.size();
  return bytes;
}

Result<LatentSample> model_latents(const std::string& model, const std::string& text,
                                   size_t token_count, const std::string& folder) {
  LatentSample sample;
  const std::string store = folder + "/store";
  {
    EMBER_ASSIGN(std::unique_ptr<Engine> engine,
                 Engine::open(options_of(model, store, !text.empty())));
    Request request;
    if (text.empty()) {
      Prng prng(1);
      for (size_t i = 0; i < token_count; ++i) {
        request.prompt.push_back(static_cast<TokenId>(prng.below(engine->config().vocab_size)));
      }
    } else {
      EMBER_ASSIGN(request.prompt, engine->encode(text));
    }
    request.max_tokens = 1;
    sample.row_values = engine->config().kv_lora_rank + engine->config().rope_dim;
    sample.latent_values = engine->config().kv_lora_rank;
    const Outcome outcome = engine->run(std::move(request));
    EMBER_TRY(outcome.status);
    if (!engine->make_durable()) return Error{ErrorCode::kIo, store + ": not made durable"};
  }
  EMBER_TRY(read_groups(store, sample));
  return sample;
}

Result<LatentSample> random_v2_lite_latents(const std::string& config_folder,
                                            const std::string& folder) {
  EMBER_ASSIGN(ModelConfig config, load_model_config(config_folder));
  config.routed_experts = 6;  // the fewest that a token asks for: a smaller file, the same latents
  EMBER_TRY(make_random_model(config, /*seed=*/3, DType::kBf16, folder + "/model"));
  EMBER_ASSIGN(LatentSample sample, model_latents(folder + "/model", "", 512, folder));
  sample.name = "random weights, V2-Lite's shape";
  return sample;
}

LatentSample synthetic_latents(SyntheticLatents kind, uint32_t groups, uint32_t layers,
                               uint64_t seed) {
  Prng prng(seed);
  LatentSample sample;
  sample.tokens = 64;
  sample.row_values = kLatentValues + kRopeValues;
  sample.latent_values = kLatentValues;
  sample.name = kind == SyntheticLatents::kLogNormalChannels ? "synthetic, log-normal channels"
                : kind == SyntheticLatents::kHeavyTails      ? "synthetic, heavy tails"
                                                             : "synthetic, fp8 rows";
  std::vector<double> scales(size_t{layers} * sample.row_values);
  for (double& scale : scales) scale = std::exp(0.8 * normal(prng));
  std::vector<double> row(sample.row_values);
  for (uint32_t g = 0; g < groups; ++g) {
    std::vector<std::byte> raw;
    for (uint32_t layer = 0; layer < layers; ++layer) {
      for (uint32_t token = 0; token < sample.tokens; ++token) {
        for (uint32_t c = 0; c < sample.row_values; ++c) {
          const bool heavy = kind == SyntheticLatents::kHeavyTails;
          row[c] = scales[layer * sample.row_values + c] * (heavy ? student(prng) : normal(prng));
        }
        if (kind == SyntheticLatents::kFp8Rows) {
          append_fp8_row(raw, row);
        } else {
          for (double value : row) append_bf16(raw, value);
        }
      }
    }
    sample.groups.push_back(std::move(raw));
  }
  if (kind == SyntheticLatents::kFp8Rows) {
    sample.dtype = DType::kU8;
    sample.row_values = kFp8RowBytes;
  }
  return sample;
}

}  // namespace ember
