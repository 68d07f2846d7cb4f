// Store blocks: how an engine of one's own keeps its latents with libemberkv. First run: computes a
// prompt's latents and stores them. Later runs, of other processes: finds and restores them.
//
//   store_blocks DIR save     store_blocks DIR load
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "store/block_cache.h"

namespace {

using namespace ember;

constexpr uint32_t kLayers = 4;
constexpr uint32_t kBlockTokens = 64;
constexpr size_t kPromptTokens = 300;  // four blocks and a part of a fifth

// What identifies the engine's latents. Whatever changes their meaning (weights, dtype, RoPE) must
// change the namespace; what changes their last bits only (kernels, machine) the numerics build.
BlockCacheOptions cache_options(const std::string& path) {
  Stream row;            // one MLA row a token and layer
  row.row_values = 576;  // bf16: 512 of the latent, 64 of the rotated key
  BlockCacheOptions options;
  options.store_path = path;
  options.layout = KvLayout(kLayers, kBlockTokens, row, 1);
  options.name_space = digest128(as_bytes("my engine, model revision 7, bf16"));
  options.numerics_build = 1;
  options.ram_bytes = uint64_t{64} << 20;
  options.disk_bytes = uint64_t{256} << 20;
  options.request_tokens = 1024;
  return options;
}

// The engine's arithmetic: here a row is a pattern of the token, its position and its layer.
void compute_row(std::byte* row, size_t bytes, TokenId token, size_t position, uint32_t layer) {
  for (size_t i = 0; i < bytes; ++i) {
    row[i] = static_cast<std::byte>(static_cast<size_t>(token) * 31 + position * 7 + layer + i);
  }
}

// Where a token's row of a layer lies on the device: the chain's block table says in which slot.
std::byte* row_of(BlockCache& cache, const Chain& chain, size_t token, uint32_t layer) {
  LatentCacheView view = cache.layer_view(layer);
  view.block_tables = chain.block_table().data();
  view.table_stride = chain.block_table().size();
  return view.row(0, static_cast<int32_t>(token));
}

// The engine's loop: every completion of the device goes to the cache; one that is not the cache's
// is the engine's own, here the ticket of sync().
bool step(BlockCache& cache, Device& device, Ticket awaited, Status& outcome) {
  std::array<Completion, 16> completions;
  const size_t count = device.wait_any(system_clock().now_us() + 50'000, completions);
  bool arrived = false;
  for (size_t i = 0; i < count; ++i) {
    if (cache.handle(completions[i])) continue;
    arrived = arrived || completions[i].ticket == awaited;
    outcome = completions[i].status;
  }
  cache.tick();
  return arrived;
}

int fail(const std::string& what) {
  std::fprintf(stderr, "store_blocks: %s\n", what.c_str());
  return 1;
}

int run(const std::string& path, bool load) {
  // The device outlives the cache; all its work is asynchronous and reports by ticket.
  const std::unique_ptr<Device> device = make_cpu_device({.workers = 1});
  Result<std::unique_ptr<BlockCache>> opened = BlockCache::open(cache_options(path), *device);
  if (!opened.ok()) return fail(opened.error().message);
  BlockCache& cache = **opened;
  if (cache.health().state != StoreState::kOk) return fail(cache.health().reason);

  std::vector<TokenId> prompt(kPromptTokens);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(i * i % 50'021);

  // What is known of it? At most all but its last token: that one has to run to give logits.
  Status ignored;
  BlockCache::Match match = cache.match(prompt);
  while (match.looking_up) {  // a large store, just opened
    step(cache, *device, {}, ignored);
    match = cache.match(prompt);
  }
  std::printf("matched %zu of %zu tokens\n", match.tokens, prompt.size());
  if (load && match.tokens != prompt.size() - 1) return fail("expected all but the last token");

  // Slots for the whole request; the restore runs in the background.
  auto chain = cache.open_chain(prompt, match.tokens, prompt.size());
  if (!chain.ok()) return fail(chain.error().message);
  while (!(*chain)->ready()) step(cache, *device, {}, ignored);
  const size_t restored = (*chain)->length();

  // Everything before `restored` is in its slots, proven; the engine computes the rest.
  const size_t row_bytes = cache.layout().row_bytes();
  std::vector<std::byte> expected(row_bytes);
  for (size_t token = 0; token < prompt.size(); ++token) {
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      std::byte* row = row_of(cache, **chain, token, layer);
      compute_row(expected.data(), row_bytes, prompt[token], token, layer);
      if (token >= restored) {
        std::memcpy(row, expected.data(), row_bytes);
      } else if (std::memcmp(row, expected.data(), row_bytes) != 0) {
        return fail("token " + std::to_string(token) + " came back with other bytes");
      }
    }
  }
  std::printf("restored %zu tokens, bit-equal; computed %zu\n", restored,
              prompt.size() - restored);

  // Full blocks are offloaded from here on, the unfinished one as a tail; sync waits until all of
  // it would survive a crash.
  cache.commit(**chain, TokenSpan(prompt).subspan(restored));
  cache.commit_tail(**chain);
  Status durable;
  if (const Ticket synced = cache.sync()) {
    while (!step(cache, *device, synced, durable)) {
    }
  }
  if (!durable.ok()) return fail(durable.error().message);
  chain->reset();  // before the cache
  std::printf("durable: %llu blocks\n",
              static_cast<unsigned long long>(cache.stats().durable_blocks));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || (std::strcmp(argv[2], "save") != 0 && std::strcmp(argv[2], "load") != 0)) {
    std::fprintf(stderr, "store_blocks DIR save|load\n");
    return 2;
  }
  return run(argv[1], std::strcmp(argv[2], "load") == 0);
}
