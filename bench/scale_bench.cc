// Scale bench: a store of many small blocks, opened anew: time to the first hit and to the full
// index, the longest visit of the engine thread, and what a block costs in RAM.
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/prng.h"
#include "store/cache/block_cache_impl.h"
#include "store/live_view.h"

namespace ember {
namespace {

namespace fs = std::filesystem;
constexpr uint32_t kSpan = kDefaultBlockTokens;
constexpr uint64_t kBuild = 1;
constexpr uint64_t kTableCacheBytes = 8;  // a block, and counted to it
constexpr uint64_t kDiskBytes = uint64_t{16} << 30;
constexpr int kVisitsAfterwards = 50;  // until tasks have given memory back
constexpr size_t kSharedBlocks = 8;  // of a prompt's front, the same for 64 prompts in a row

struct Config {
  size_t blocks = 100'000;
  size_t chain_blocks = 64;
  bool json = false;
  bool encrypt = false;
  bool fill_only = false;
  bool settle = false;
  std::string kept;  // a store to be opened again if it is there, and to stay
};

struct Measured {
  double fill_s = 0;
  double open_s = 0;
  double found_s = 0;      // the prompt's blocks, by look-up
  double first_hit_s = 0;  // and restored
  double full_s = 0;
  double full_cpu_s = 0;  // of all threads: on a busy machine the truer figure
  double recalled_s = 0;  // until the shadows hold what was stored
  double longest_visit_s = 0;      // of all these, by the engine thread's CPU
  double longest_visit_wall_s = 0;
  double longest_visit_at_s = 0;  // when it began
  double began_s = 0;
  double longest_question_s = 0;  // of what inspects the open store, by the engine thread's CPU
  uint64_t indexed = 0;
  double bytes_a_block = 0;         // of the heap at the end, beside token ids and shadows
  double shadow_bytes_a_block = 0;  // of both shadows
  double index_bytes_a_block = 0;   // what the index counts itself
  double peak_bytes_a_block = 0;   // resident at the most, less what opening an empty store takes
  double disk_bytes_a_block = 0;
};

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_s(clockid_t clock) {
  struct timespec spent {};
  clock_gettime(clock, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

template <typename T>
T must(Result<T> result) {
  EMBER_CHECK(result.ok(), result.ok() ? "" : result.error().message.c_str());
  return std::move(result).value();
}
void must(const Status& status) {
  EMBER_CHECK(status.ok(), status.ok() ? "" : status.error().message.c_str());
}

KvLayout tiny_layout() {
  Stream stream;
  stream.row_values = 2;
  return KvLayout(1, kSpan, stream, 1);
}

// Tokens of the block at a position of a prompt. Prompts begin alike in groups of 64.
std::vector<TokenId> block_tokens(size_t prompt, size_t position) {
  const size_t author = position < kSharedBlocks ? prompt / 64 : prompt + (size_t{1} << 32);
  std::vector<TokenId> tokens(kSpan);
  for (size_t i = 0; i < kSpan; ++i) {
    tokens[i] = static_cast<TokenId>(counter_random(author, position, i) % 128'000);
  }
  return tokens;
}

std::vector<TokenId> prompt_tokens(const Config& config, size_t prompt) {
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < config.chain_blocks; ++i) {
    const std::vector<TokenId> block = block_tokens(prompt, i);
    tokens.insert(tokens.end(), block.begin(), block.end());
  }
  return tokens;
}

NamespaceHash name_space() {
  NamespaceHash name;
  name.bytes[0] = 1;
  return name;
}

// How many prompts it takes: the first of each 64 brings its front, the others what is their own.
size_t prompts_of(const Config& config) {
  size_t prompts = 0;
  for (size_t blocks = 0; blocks < config.blocks; ++prompts) {
    blocks += prompts % 64 == 0 ? config.chain_blocks : config.chain_blocks - kSharedBlocks;
  }
  return prompts;
}

EncryptionOptions encryption_of(const Config& config, const std::string& path) {
  return {.on = config.encrypt, .key_file = path + ".key"};
}

// Writes the records as the offload would, with payloads of a few bytes.
void fill(const Config& config, const std::string& path) {
  const KvLayout layout = tiny_layout();
  StoreParts parts = must(StoreParts::open(path, must(plan_disk(kDiskBytes)), 64u << 20, 4u << 20,
                                           nullptr, encryption_of(config, path)));
  const BlockHasher hasher(parts.secret, name_space(), "shared");
  const std::vector<std::byte> rows(layout.block_bytes());
  std::vector<std::pair<BlockHash, TouchRecord>> touches;
  size_t written = 0;
  size_t prompt = 0;
  for (; written < config.blocks; ++prompt) {
    BlockHash parent = hasher.root();
    for (size_t i = 0; i < config.chain_blocks && written < config.blocks; ++i) {
      BlockIdentity identity;
      identity.name_space = name_space();
      identity.scope = "shared";
      identity.parent = parent;
      identity.numerics_build = kBuild;
      identity.position = static_cast<uint32_t>(i);
      identity.tokens = block_tokens(prompt, i);
      identity.hash = parent = hasher.next(parent, identity.tokens);
      if (i < kSharedBlocks && prompt % 64 != 0) continue;
      CodedBlock coded = encode_block(layout, identity, rows.data());
      Status put = parts.disk->put(coded.record, coded.payloads);
      while (!put.ok() && put.error().code == ErrorCode::kBusy) {
        ::usleep(1000);
        put = parts.disk->put(coded.record, coded.payloads);
      }
      must(put);
      touches.push_back({identity.hash, {1'000'000 + static_cast<int64_t>(prompt), 1}});
      ++written;
    }
    if (touches.size() < 4096 && written < config.blocks) continue;
    must(parts.disk->touch(touches));
    touches.clear();
    if (prompt % 512 == 0) must(parts.disk->flush());
  }
  must(parts.disk->flush());
}

size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

size_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return 0;
}

// What opening an empty store takes is not the blocks'.
BlockCacheOptions cache_options(const Config& config, const std::string& path) {
  BlockCacheOptions options;
  options.store_path = path;
  options.encryption = encryption_of(config, path);
  options.layout = tiny_layout();
  options.name_space = name_space();
  options.numerics_build = kBuild;
  options.ram_bytes = 64u << 20;
  options.disk_bytes = kDiskBytes;
  options.request_tokens = 8192;
  return options;
}

void visit(BlockCache& cache, Device& device, Measured& measured) {
  std::array<Completion, 16> completions;
  const size_t count = device.wait_any(system_clock().now_us() + 20'000, completions);
  const double began = cpu_s(CLOCK_THREAD_CPUTIME_ID);
  const double wall_began = now_s();
  for (size_t i = 0; i < count; ++i) {
    EMBER_CHECK(cache.handle(completions[i]), "a ticket that nobody knows");
  }
  if (count == 0) cache.tick();
  measured.longest_visit_wall_s = std::max(measured.longest_visit_wall_s, now_s() - wall_began);
  const double spent = cpu_s(CLOCK_THREAD_CPUTIME_ID) - began;
  if (spent <= measured.longest_visit_s) return;
  measured.longest_visit_s = spent;
  measured.longest_visit_at_s = wall_began - measured.began_s;
}

// What stat, ls and a walk ask of the engine thread, a page each time.
void ask_questions(const BlockCache& cache, const std::vector<TokenId>& tokens,
                   const HashSecret& secret, Measured& measured) {
  constexpr uint32_t kPage = 512;
  const BlockHasher hasher(secret, name_space(), "shared");
  std::vector<BlockHash> hashes(kPage);
  BlockHash parent;
  for (size_t i = 0; i < kPage; ++i) {
    const size_t position = i % (tokens.size() / kSpan);
    if (position == 0) parent = hasher.root();
    hashes[i] = parent = hasher.next(parent, TokenSpan(tokens).subspan(position * kSpan, kSpan));
  }
  const auto timed = [&measured](const auto& question) {
    const double began = cpu_s(CLOCK_THREAD_CPUTIME_ID);
    question();
    measured.longest_question_s =
        std::max(measured.longest_question_s, cpu_s(CLOCK_THREAD_CPUTIME_ID) - began);
  };
  const LiveView& view = cache.live_view();
  for (int i = 0; i < 20; ++i) {
    timed([&] { EMBER_CHECK(view.places(hashes).size() == kPage, "a place for each"); });
    timed([&] { EMBER_CHECK(cache.stats().indexed_blocks > 0, "blocks are indexed"); });
  }
  LiveView::UnstoredPage page;
  while (!page.done) timed([&, from = page.next] { page = view.unstored(from, kPage); });
}

// As BlockCache::open, but that the index has all the RAM it asks for: its cost is the question.
// RocksDB's tables have an eighth of the cache that the plan gives them beside such an index.
std::unique_ptr<BlockCache> open_cache(const Config& config, const std::string& path,
                                       Device& device) {
  const BlockCacheOptions options = cache_options(config, path);
  RamPlan plan = must(plan_ram(options.ram_bytes, options.layout, options.request_tokens));
  plan.index_bytes = 0;
  plan.block_cache_bytes = std::max<uint64_t>(1u << 20, kTableCacheBytes * config.blocks);
  StoreParts parts =
      must(StoreParts::open(path, must(plan_disk(options.disk_bytes)), plan.memtable_bytes,
                            plan.block_cache_bytes, nullptr, options.encryption));
  return must(BlockCacheImpl::make(options, CacheTuning{}, plan, std::move(parts), device));
}

// Until RocksDB writes no more: it has put its tables in order.
void settle(BlockCache& cache, Device& device) {
  Measured unused;
  uint64_t written = 0;
  for (double quiet_since = now_s(); now_s() < quiet_since + 2;) {
    visit(cache, device, unused);
    if (std::exchange(written, cache.stats().written_bytes) != written) quiet_since = now_s();
  }
}

Measured reopen(const Config& config, const std::string& path, size_t prompt) {
  Measured measured;
  const auto device = make_cpu_device({.workers = 1, .host_workers = 4});
  open_cache(config, path + "-empty", *device);
  const size_t empty_heap = heap_bytes();
  const size_t empty_peak = peak_resident_bytes();

  const double began = measured.began_s = now_s();
  const double cpu_began = cpu_s(CLOCK_PROCESS_CPUTIME_ID);
  const auto cache = open_cache(config, path, *device);
  measured.open_s = now_s() - began;
  const std::vector<TokenId> tokens = prompt_tokens(config, prompt / 2);
  BlockCache::Match match = cache->match(tokens);
  while (match.looking_up) {
    visit(*cache, *device, measured);
    match = cache->match(tokens);
  }
  measured.found_s = now_s() - began;
  EMBER_CHECK(match.tokens == tokens.size() - 1, "the prompt is found at once");
  {
    const auto chain = must(cache->open_chain(tokens, match.tokens, tokens.size()));
    while (!chain->ready()) visit(*cache, *device, measured);
    EMBER_CHECK(chain->length() == match.tokens, "what was found is restored");
  }
  measured.first_hit_s = now_s() - began;
  while (cache->loading()) visit(*cache, *device, measured);
  measured.full_s = now_s() - began;
  measured.full_cpu_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_began;

  const auto& inside = static_cast<const BlockCacheImpl&>(*cache);
  while (inside.ledger().ranks().to_recall() > 0) visit(*cache, *device, measured);
  measured.recalled_s = now_s() - began;
  for (int i = 0; i < kVisitsAfterwards; ++i) visit(*cache, *device, measured);
  ask_questions(*cache, tokens, must(StoreDirectory::open_read_only(
                                         path, encryption_of(config, path)))->secret(),
                measured);
  const auto blocks = static_cast<double>(config.blocks);
  const double token_bytes = blocks * kSpan * sizeof(TokenId);
  const BlockCacheStats stats = cache->stats();
  const auto shadow_bytes = static_cast<double>(stats.shadow_bytes);
  measured.shadow_bytes_a_block = shadow_bytes / blocks;
  measured.bytes_a_block =
      (static_cast<double>(heap_bytes() - empty_heap) - token_bytes - shadow_bytes) / blocks;
  measured.peak_bytes_a_block =
      (static_cast<double>(peak_resident_bytes() - empty_peak) - token_bytes) / blocks;
  measured.index_bytes_a_block =
      (static_cast<double>(inside.index_bytes()) - token_bytes) / blocks;
  measured.indexed = stats.indexed_blocks;
  measured.disk_bytes_a_block = static_cast<double>(stats.disk_bytes) / blocks;
  EMBER_CHECK(stats.stranded == 0 && stats.unreadable_records == 0, "every record came");
  if (config.settle) settle(*cache, *device);
  return measured;
}

// What a million blocks are held to; fewer are held to the same, which is easy.
struct Bar {
  const char* what;
  double found;
  double most;
};

std::array<Bar, 6> bars_of(const Measured& m) {
  return {{{"first hit, s", m.first_hit_s, 1.0},
           {"full index, s", m.full_s, 5.0},
           {"longest visit, ms", m.longest_visit_s * 1e3, 10.0},
           {"longest question, ms", m.longest_question_s * 1e3, 10.0},
           {"RAM a block, bytes", m.bytes_a_block, 200.0},
           {"with both shadows", m.bytes_a_block + m.shadow_bytes_a_block, 320.0}}};
}

void print_json(const Config& config, const Measured& m) {
  std::printf("{\"blocks\":%zu,\"encrypted\":%s,\"indexed\":%llu,", config.blocks,
              config.encrypt ? "true" : "false", static_cast<unsigned long long>(m.indexed));
  std::printf("\"open_s\":%.4f,\"first_hit_s\":%.4f,\"full_index_s\":%.4f,", m.open_s,
              m.first_hit_s, m.full_s);
  std::printf("\"full_index_cpu_s\":%.4f,\"shadows_full_s\":%.4f,", m.full_cpu_s, m.recalled_s);
  std::printf("\"longest_visit_s\":%.5f,\"longest_visit_wall_s\":%.5f,", m.longest_visit_s,
              m.longest_visit_wall_s);
  std::printf("\"longest_question_s\":%.5f,", m.longest_question_s);
  std::printf("\"ram_bytes_a_block\":%.1f,\"shadow_bytes_a_block\":%.1f,", m.bytes_a_block,
              m.shadow_bytes_a_block);
  std::printf("\"index_bytes_a_block\":%.1f,\"peak_bytes_a_block\":%.1f,",
              m.index_bytes_a_block, m.peak_bytes_a_block);
  std::printf("\"disk_bytes_a_block\":%.1f}\n", m.disk_bytes_a_block);
}

void print(const Config& config, const Measured& m) {
  std::printf("blocks               %zu of %u tokens, prompts of %zu, %s; filled in %.1f s\n",
              config.blocks, kSpan, config.chain_blocks,
              config.encrypt ? "encrypted" : "in clear", m.fill_s);
  std::printf("open returns after   %.3f s\n", m.open_s);
  std::printf("first hit after      %.3f s, found after %.3f s\n", m.first_hit_s, m.found_s);
  std::printf("full index after     %.3f s, %.3f s of CPU (%llu blocks); its shadows %.3f s\n",
              m.full_s, m.full_cpu_s, static_cast<unsigned long long>(m.indexed), m.recalled_s);
  std::printf("longest visit        %.2f ms of the engine thread's CPU, after %.2f s; %.2f ms by "
              "the clock\n",
              m.longest_visit_s * 1e3, m.longest_visit_at_s, m.longest_visit_wall_s * 1e3);
  std::printf("longest question     %.2f ms of it, asked by who inspects the open store\n",
              m.longest_question_s * 1e3);
  std::printf("RAM a block          %.0f bytes beside token ids, %.0f of them the index's; "
              "shadows %.0f\n",
              m.bytes_a_block, m.index_bytes_a_block, m.shadow_bytes_a_block);
  std::printf("RAM at most          %.0f bytes a block beside token ids, while loading\n",
              m.peak_bytes_a_block);
  std::printf("disk a block         %.0f bytes\n", m.disk_bytes_a_block);
  for (const Bar& bar : bars_of(m)) {
    std::printf("%s  %-20s %8.2f of at most %.0f\n", bar.found <= bar.most ? "holds" : "FAILS",
                bar.what, bar.found, bar.most);
  }
}

int run(int argc, char** argv) {
  Config config;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (argument == "--json") {
      config.json = true;
    } else if (argument == "--encrypt") {
      config.encrypt = true;
    } else if (argument == "--settle") {
      config.settle = true;
    } else if (argument == "--fill-only") {
      config.fill_only = true;
    } else if (argument == "--blocks") {
      config.blocks = value();
    } else if (argument == "--chain-blocks") {
      config.chain_blocks = value();
    } else if (argument == "--folder" && i + 1 < argc) {
      folder = argv[++i];
    } else if (argument == "--keep" && i + 1 < argc) {
      config.kept = argv[++i];
    } else {
      std::fprintf(stderr, "scale_bench [--blocks N] [--chain-blocks N] [--encrypt] "
                           "[--folder DIR] [--keep STORE [--fill-only] [--settle]] [--json]\n");
      return 2;
    }
  }
  if (config.blocks == 0 || config.chain_blocks <= kSharedBlocks) {
    std::fprintf(stderr, "--blocks: expected 1 or more; --chain-blocks: expected %zu or more\n",
                 kSharedBlocks + 1);
    return 2;
  }
  if (folder.empty()) folder = fs::temp_directory_path().string();
  const std::string own = folder + "/ember-scale-" + std::to_string(::getpid());
  const std::string path = config.kept.empty() ? own : config.kept;
  const double began = now_s();
  if (!fs::exists(path)) fill(config, path);
  const double fill_s = now_s() - began;
  if (config.fill_only) return 0;
  malloc_trim(0);
  Measured measured = reopen(config, path, prompts_of(config) - 1);
  measured.fill_s = fill_s;
  config.json ? print_json(config, measured) : print(config, measured);
  if (config.kept.empty()) {
    fs::remove_all(path);
    fs::remove(path + ".key");
  }
  fs::remove_all(path + "-empty");
  fs::remove(path + "-empty.key");
  return 0;
}

}  // namespace
}  // namespace ember

int main(int argc, char** argv) { return ember::run(argc, argv); }
