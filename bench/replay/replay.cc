// The engine's part, without latents: match, open a chain, commit what was missing.
#include "bench/replay/replay.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/prng.h"
#include "kernels/device.h"
#include "store/cache/block_cache_impl.h"
#include "store/disk_plan.h"

namespace ember::replay {
namespace {

constexpr uint64_t kSeed = 20'241;
constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kShadowsBytes = 64 * kMiB;
// Of a request that is on its way through the host tier to a store.
constexpr uint32_t kStoreHostSlots = 64;

// A block's tokens follow from its number, so equal chains have equal tokens.
void append_tokens(BlockNumber block, uint32_t count, std::vector<TokenId>& tokens) {
  const auto base = static_cast<uint32_t>(mix64(kSeed + block));
  tokens.resize(tokens.size() + count);
  TokenId* at = tokens.data() + tokens.size() - count;
  for (uint32_t i = 0; i < count; ++i) at[i] = static_cast<TokenId>((base + i * 0x9e3779b9u) >> 1);
}

class Replay {
 public:
  Replay(const Trace& trace, const ReplayOptions& options)
      : trace_(trace), options_(options), device_(make_sim_device(kSeed)) {}
  ~Replay() { close(); }

  Status open() {
    const uint64_t row_values =
        on_disk() ? std::max<uint64_t>(1, options_.payload_bytes / (2 * trace_.block_tokens)) : 1;
    Stream stream;
    stream.row_values = static_cast<uint32_t>(row_values);
    cache_options_.layout = KvLayout(1, trace_.block_tokens, stream);
    cache_options_.numerics_build = 1;
    cache_options_.clock = &clock_;
    cache_options_.settings.eviction = options_.policy;
    cache_options_.settings.scrub_bytes_per_second = 0;
    RamPlan plan;
    plan.device_slots = static_cast<uint32_t>(trace_.longest + 1);
    plan.host_slots =
        on_disk() ? kStoreHostSlots : static_cast<uint32_t>(options_.capacity_blocks);
    StoreParts parts;
    if (options_.open_disk) {
      cache_options_.store_path = "in memory";
      parts.disk = options_.open_disk();
      parts.plan.blocks_bytes = options_.disk_limit_bytes;
      parts.plan.shadows_bytes = kShadowsBytes;
      parts.shadows.path = options_.shadows_path;
      parts.writable = true;
    } else if (on_disk()) {
      EMBER_ASSIGN(const DiskPlan disk, disk_plan());
      cache_options_.store_path = options_.directory;
      EMBER_ASSIGN(parts,
                   StoreParts::open(options_.directory, disk, memtable_bytes(disk), kMiB));
    }
    EMBER_ASSIGN(cache_, BlockCacheImpl::make(cache_options_, CacheTuning{}, plan,
                                              std::move(parts), *device_));
    while (cache_->loading()) step();
    return {};
  }

  Status run() {
    const auto began = std::chrono::steady_clock::now();
    const auto reopen_at = static_cast<size_t>(options_.restart_at *
                                               static_cast<double>(trace_.requests.size()));
    for (size_t i = 0; i < trace_.requests.size(); ++i) {
      if (reopen_at > 0 && i == reopen_at) {
        EMBER_TRY(restart());
      }
      advance_clock(trace_.requests[i].at_s);
      trace_.chain(trace_.requests[i], chain_);
      request(chain_);
      if (i % kCensusEvery == 0) take_stock();
    }
    take_stock();
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return {};
  }

  ReplayReport report() {
    close();
    report_.requests = trace_.requests.size();
    report_.references = trace_.references;
    return report_;
  }

 private:
  static constexpr size_t kCensusEvery = 1000;
  static constexpr size_t kMostIdleSteps = 60'000;

  bool on_disk() const { return !options_.directory.empty() || options_.open_disk; }
  Tier measured() const { return on_disk() ? Tier::kDisk : Tier::kHost; }

  // In proportion to the store: what is not flushed yet takes of its room.
  static uint64_t memtable_bytes(const DiskPlan& disk) {
    return std::clamp(disk.blocks_bytes / 64, 2 * kMiB, 32 * kMiB);
  }
  // So much that the share of the blocks is what their payload comes to.
  Result<DiskPlan> disk_plan() const {
    DiskPlan plan;
    plan.blocks_bytes = options_.capacity_blocks * cache_options_.layout.block_bytes();
    plan.conversations_bytes = kLeastConversationsBytes;
    plan.tails_bytes = kLeastConversationsBytes / 4;
    plan.ballast_bytes = plan_epochs(plan.blocks_bytes).ballast_bytes;
    plan.shadows_bytes = kShadowsBytes;
    if (plan.blocks_bytes + plan.conversations_bytes < kLeastDiskBytes) {
      return Error{ErrorCode::kInvalidArgument,
                   "payload-bytes: " + std::to_string(options_.capacity_blocks) +
                       " blocks come to " + std::to_string(plan.blocks_bytes) +
                       " bytes, less than the least store's " + std::to_string(kLeastDiskBytes)};
    }
    return plan;
  }

  Status restart() {
    const std::string earlier = options_.shadows_path + ".earlier";
    std::error_code none;
    if (options_.lose_last_shadows) {
      std::filesystem::copy_file(options_.shadows_path, earlier, none);
    }
    close();
    if (options_.lose_last_shadows) std::filesystem::rename(earlier, options_.shadows_path, none);
    return open();
  }

  void close() {
    if (cache_ == nullptr) return;
    if (on_disk()) {
      drain();
      const BlockCacheStats stats = cache_->stats();
      report_.written_bytes += stats.written_bytes;
      report_.accepted_bytes += stats.offloaded_blocks * cache_options_.layout.block_bytes();
    }
    const BlockCacheStats stats = cache_->stats();
    report_.switches += stats.shadow_switches[static_cast<size_t>(measured())];
    report_.evicted_blocks += stats.evicted_blocks;
    report_.offload_failures += stats.offload_failures;
    cache_.reset();
  }

  void advance_clock(double at_s) {
    const auto at_us = static_cast<int64_t>(at_s * 1e6);
    // At least a millisecond, as requests are: their times of use, by which a restart finds their
    // order, never overlap.
    clock_.advance_us(std::max<int64_t>(1000, at_us - clock_.now_us()));
  }

  bool step() {
    std::array<Completion, 16> completions;
    const size_t count = device_->wait_any(0, completions);
    for (size_t i = 0; i < count; ++i) {
      EMBER_CHECK(cache_->handle(completions[i]), "a completion that is nobody's");
    }
    return count > 0;
  }
  // The same, and where all that is under way waits for a time to pass, a millisecond passes on
  // both clocks: the disk's own work needs real time. False: it has been idle for too long.
  bool go_on() {
    if (step()) {
      idle_steps_ = 0;
      return true;
    }
    if (!on_disk() || ++idle_steps_ > kMostIdleSteps) return false;
    if (options_.open_disk == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    clock_.advance_us(1000);
    cache_->tick();
    return true;
  }
  // Until nothing is under way that could end by itself.
  void drain() {
    idle_steps_ = 0;
    while (cache_->busy() && go_on()) {
    }
  }

  void request(const std::vector<BlockNumber>& chain) {
    const size_t span = trace_.block_tokens;
    tokens_.clear();
    for (BlockNumber block : chain) append_tokens(block, trace_.block_tokens, tokens_);
    tokens_.push_back(0);  // the token that is always computed: all blocks can be hits
    cache_->tick();
    const BlockCache::Match match = cache_->match(tokens_);
    const size_t hits = match.tokens_by_tier[static_cast<size_t>(measured())] / span;
    report_.hits += std::min(hits, chain.size());
    auto opened = cache_->open_chain(tokens_, hits * span, tokens_.size());
    if (!opened.ok()) {
      ++report_.refused_requests;
      return;
    }
    std::unique_ptr<Chain> open = std::move(*opened);
    idle_steps_ = 0;
    while (!open->ready() && go_on()) {
    }
    if (!open->ready()) {
      ++report_.refused_requests;
      return;
    }
    if (on_disk()) fill(*open, chain);
    const size_t length = open->length();
    cache_->commit(*open, TokenSpan(tokens_).subspan(length, chain.size() * span - length));
    drain();
    open.reset();
    drain();
    // What is left above counts for nothing: one tier is measured.
    cache_->drop_tier(Tier::kDevice);
    if (on_disk()) cache_->drop_tier(Tier::kHost);
  }

  // Bytes that no codec makes smaller, so that stored and raw sizes are one.
  void fill(const Chain& open, const std::vector<BlockNumber>& chain) {
    const KvLayout& layout = cache_options_.layout;
    LatentCacheView view = cache_->layer_view(0);
    view.block_tables = open.block_table().data();
    view.table_stride = open.block_table().size();
    for (size_t i = open.length() / layout.block_tokens(); i < chain.size(); ++i) {
      const auto first = static_cast<int32_t>(i * layout.block_tokens());
      std::byte* at = view.row(0, first);
      for (size_t word = 0; word + 8 <= layout.block_bytes(); word += 8) {
        const uint64_t bits = counter_random(kSeed, chain[i], word);
        std::memcpy(at + word, &bits, sizeof bits);
      }
    }
  }

  void take_stock() {
    const BlockCacheStats stats = cache_->stats();
    report_.stranded += stats.stranded;
    report_.shadow_bytes = std::max(report_.shadow_bytes, stats.shadow_bytes);
    report_.most_disk_bytes = std::max(report_.most_disk_bytes, stats.disk_bytes);
    if (on_disk()) {
      report_.disk_limit_bytes =
          options_.capacity_blocks * cache_options_.layout.block_bytes();
    }
  }

  const Trace& trace_;
  const ReplayOptions& options_;
  ManualClock clock_;
  std::unique_ptr<Device> device_;
  BlockCacheOptions cache_options_;
  std::unique_ptr<BlockCacheImpl> cache_;
  std::vector<BlockNumber> chain_;
  std::vector<TokenId> tokens_;
  size_t idle_steps_ = 0;
  ReplayReport report_;
};

}  // namespace

Result<ReplayReport> replay(const Trace& trace, const ReplayOptions& options) {
  Replay run(trace, options);
  EMBER_TRY(run.open());
  EMBER_TRY(run.run());
  return run.report();
}

}  // namespace ember::replay
