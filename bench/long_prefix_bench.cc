// Long prefix bench: a prefix of synthetic latents of DeepSeek-V2-Lite's shape through the block
// cache: stored, closed, reopened, restored whole and compared, beside the raw drive's rates.
//
// Usage: long_prefix_bench [--tokens N] [--folder DIR]    (131,072 tokens, about 4 GB, by default)
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/prng.h"
#include "store/block_cache.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kLayers = 27;
constexpr uint32_t kRowValues = 576;
constexpr uint32_t kSpan = kDefaultBlockTokens;
constexpr size_t kPatterns = 8;  // blocks whose exponents differ; signs and mantissas always do
constexpr size_t kDriveCall = 4u << 20;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename T>
T must(Result<T> result) {
  EMBER_CHECK(result.ok(), result.ok() ? "" : result.error().message.c_str());
  return std::move(result).value();
}

// Bytes a second of the drive under `folder`, past the page cache; 0 where O_DIRECT does not work.
struct DriveRates {
  double write = 0;
  double read = 0;
};

DriveRates measure_drive(const std::string& folder, size_t bytes) {
  const std::string path = folder + "/raw";
  DriveRates rates;
  void* memory = nullptr;
  if (::posix_memalign(&memory, 4096, kDriveCall) != 0) return rates;
  Prng prng(7);
  for (size_t i = 0; i < kDriveCall / 8; ++i) static_cast<uint64_t*>(memory)[i] = prng();
  bytes = std::max(bytes / kDriveCall, size_t{1}) * kDriveCall;
  const auto pass = [&](int flags, auto&& call) {
    const int file = ::open(path.c_str(), flags | O_DIRECT, 0600);
    if (file < 0) return 0.0;
    const double start = now_s();
    bool good = true;
    for (size_t at = 0; at < bytes && good; at += kDriveCall) good = call(file, at);
    good = ::fdatasync(file) == 0 && good;
    const double seconds = now_s() - start;
    ::close(file);
    return good ? static_cast<double>(bytes) / seconds : 0.0;
  };
  const auto whole = static_cast<ssize_t>(kDriveCall);
  rates.write = pass(O_CREAT | O_WRONLY | O_TRUNC, [&](int file, size_t at) {
    return ::pwrite(file, memory, kDriveCall, static_cast<off_t>(at)) == whole;
  });
  rates.read = pass(O_RDONLY, [&](int file, size_t at) {
    return ::pread(file, memory, kDriveCall, static_cast<off_t>(at)) == whole;
  });
  std::free(memory);
  ::unlink(path.c_str());
  return rates;
}

// Latents of a block: one of some patterns of channels that differ in size, with signs and
// mantissas of its own.
class Latents {
 public:
  explicit Latents(const KvLayout& layout) : words_(layout.block_bytes() / 8) {
    Prng prng(1);
    const auto normal = [&prng] {
      return std::sqrt(-2 * std::log(1 - prng.uniform())) * std::cos(2 * M_PI * prng.uniform());
    };
    std::vector<double> sizes(size_t{kLayers} * kRowValues);
    for (double& size : sizes) size = std::exp(0.8 * normal());
    for (auto& pattern : patterns_) {
      pattern.resize(words_);
      auto* bytes = reinterpret_cast<std::byte*>(pattern.data());
      for (size_t i = 0; i < layout.block_bytes() / 2; ++i) {
        const size_t layer = i / (size_t{kRowValues} * kSpan);
        const double size = sizes[layer * kRowValues + i % kRowValues];
        const bf16 value = to_bf16(static_cast<float>(size * normal()));
        std::memcpy(bytes + 2 * i, &value, sizeof value);
      }
    }
  }
  void fill(size_t block, std::vector<uint64_t>& out) const {
    out = patterns_[block % kPatterns];
    Prng prng(block + 100);
    for (uint64_t& word : out) word ^= prng() & 0x807f807f807f807f;
  }

 private:
  size_t words_;
  std::array<std::vector<uint64_t>, kPatterns> patterns_;
};

class Run {
 public:
  Run(size_t tokens, const std::string& folder)
      : folder_(folder), device_(make_cpu_device({})), tokens_(tokens) {
    Stream stream;
    stream.row_values = kRowValues;
    layout_ = KvLayout(kLayers, kSpan, stream);
    Prng prng(2);
    for (TokenId& token : tokens_) token = static_cast<TokenId>(prng.below(100'000));
  }

  void run() {
    const size_t blocks = tokens_.size() / kSpan;
    const double raw = static_cast<double>(blocks * layout_.block_bytes());
    const Latents latents(layout_);
    open();
    double start = now_s();
    store(latents);
    sync();
    const double stored_s = now_s() - start;
    const double stored = static_cast<double>(cache_->stats().stored_bytes);
    cache_.reset();
    start = now_s();
    open();
    const double opened_s = now_s() - start;
    start = now_s();
    auto chain = restore();
    const double restored_s = now_s() - start;
    compare(*chain, latents);
    chain.reset();
    cache_.reset();
    const DriveRates drive = measure_drive(folder_, static_cast<size_t>(stored));
    std::printf("%zu tokens, %.2f GB raw, %.2f GB stored (%.3f times smaller)\n", tokens_.size(),
                raw / 1e9, stored / 1e9, raw / stored);
    std::printf("stored    %7.2f s  %6.2f GB/s raw, %.2f GB/s to the drive%s\n", stored_s,
                raw / stored_s / 1e9, stored / stored_s / 1e9,
                share(stored / stored_s, drive.write));
    std::printf("reopened  %7.2f s\n", opened_s);
    std::printf("restored  %7.2f s  %6.2f GB/s raw, %.2f GB/s from the drive%s\n", restored_s,
                raw / restored_s / 1e9, stored / restored_s / 1e9,
                share(stored / restored_s, drive.read));
    std::printf("raw drive           %6.2f GB/s written, %.2f read; 4 MiB a call, one thread\n",
                drive.write / 1e9, drive.read / 1e9);
    std::printf("bit-equal, all %zu tokens\n", tokens_.size());
  }

 private:
  const char* share(double rate, double peak) {
    if (peak <= 0) return "";
    std::snprintf(share_, sizeof share_, ", %.0f %% of the raw drive's", 100 * rate / peak);
    return share_;
  }

  void open() {
    BlockCacheOptions options;
    options.store_path = folder_ + "/store";
    options.layout = layout_;
    options.name_space.bytes[0] = 1;
    options.numerics_build = 1;
    // The arena holds the whole prefix; as many host slots again would be of no use.
    options.ram_bytes = layout_.token_bytes() * tokens_.size() * 5 / 3 + (uint64_t{1} << 30);
    options.disk_bytes = layout_.token_bytes() * tokens_.size() * 3 / 2 + (uint64_t{1} << 30);
    options.request_tokens = tokens_.size() + kSpan;
    cache_ = must(BlockCache::open(options, *device_));
    EMBER_CHECK(cache_->health().state == StoreState::kOk, cache_->health().reason.c_str());
  }

  void pump(int64_t patience_us) {
    std::array<Completion, 64> completions;
    const size_t n = device_->wait_any(system_clock().now_us() + patience_us, completions);
    for (size_t i = 0; i < n; ++i) {
      EMBER_CHECK(cache_->handle(completions[i]) || completions[i].ticket == sync_,
                  "a completion of nobody");
      if (completions[i].ticket == sync_) synced_ = completions[i].status.ok();
    }
    cache_->tick();
  }

  std::byte* layer_of(const Chain& chain, uint32_t layer, size_t block) {
    LatentCacheView view = cache_->layer_view(layer);
    view.block_tables = chain.block_table().data();
    view.table_stride = chain.block_table().size();
    return view.row(0, static_cast<int32_t>(block * kSpan));
  }

  // The making of latents included, as a prefill's computing would be.
  void store(const Latents& latents) {
    auto chain = must(cache_->open_chain(tokens_, 0, tokens_.size()));
    std::vector<uint64_t> rows;
    for (size_t block = 0; block < tokens_.size() / kSpan; ++block) {
      latents.fill(block, rows);
      const auto* bytes = reinterpret_cast<const std::byte*>(rows.data());
      for (uint32_t layer = 0; layer < kLayers; ++layer) {
        std::memcpy(layer_of(*chain, layer, block), bytes + layout_.layer_offset(layer),
                    layout_.layer_bytes());
      }
      cache_->commit(*chain, TokenSpan(tokens_).subspan(block * kSpan, kSpan));
      pump(0);
    }
  }

  void sync() {
    sync_ = cache_->sync();
    synced_ = !sync_;
    while (!synced_) pump(50'000);
  }

  // One token more than is known, since the last one is never restored.
  std::unique_ptr<Chain> restore() {
    std::vector<TokenId> prompt = tokens_;
    prompt.push_back(1);
    BlockCache::Match match = cache_->match(prompt);
    while (match.looking_up || (cache_->loading() && match.tokens < tokens_.size())) {
      pump(50'000);
      match = cache_->match(prompt);
    }
    EMBER_CHECK(match.tokens == tokens_.size(), "the whole prefix is known");
    auto chain = must(cache_->open_chain(prompt, match.tokens, prompt.size()));
    while (!chain->ready()) pump(50'000);
    EMBER_CHECK(chain->length() == tokens_.size(), "the whole prefix is restored");
    return chain;
  }

  void compare(const Chain& chain, const Latents& latents) {
    std::vector<uint64_t> rows;
    for (size_t block = 0; block < tokens_.size() / kSpan; ++block) {
      latents.fill(block, rows);
      const auto* bytes = reinterpret_cast<const std::byte*>(rows.data());
      for (uint32_t layer = 0; layer < kLayers; ++layer) {
        EMBER_CHECK(std::memcmp(layer_of(chain, layer, block), bytes + layout_.layer_offset(layer),
                                layout_.layer_bytes()) == 0,
                    "restored rows are those that were stored");
      }
    }
  }

  std::string folder_;
  std::unique_ptr<Device> device_;
  KvLayout layout_;
  std::vector<TokenId> tokens_;
  std::unique_ptr<BlockCache> cache_;
  Ticket sync_;
  bool synced_ = false;
  char share_[64] = {};
};

}  // namespace
}  // namespace ember

int main(int argc, char** argv) {
  size_t tokens = 128 * 1024;
  std::string parent = std::filesystem::temp_directory_path().string();
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    const bool known = i + 1 < argc && (flag == "--tokens" || flag == "--folder");
    if (!known) {
      std::fprintf(stderr, "usage: long_prefix_bench [--tokens N] [--folder DIR]\n");
      return 2;
    }
    if (flag == "--tokens") tokens = std::strtoull(argv[i + 1], nullptr, 10);
    if (flag == "--folder") parent = argv[i + 1];
  }
  tokens = std::max<size_t>(tokens / 64, 1) * 64;
  std::string folder = parent + "/emberkv-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  ember::Run(tokens, folder).run();
  std::filesystem::remove_all(folder);
  return 0;
}
