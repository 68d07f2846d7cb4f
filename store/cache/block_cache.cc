// Opening and closing the cache, and its part in the engine's loop.
#include "store/block_cache.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "store/cache/block_cache_impl.h"
#include "store/cache/snapshot.h"

namespace ember {
namespace {

// Of yesterday's blocks, for the shadows: some milliseconds' worth.
constexpr size_t kRecalledAtOnce = 1024;

void add_eviction_stats(const EvictionRanks& ranks, BlockCacheStats& stats) {
  for (Tier tier : EvictionRanks::kTiers) {
    const auto t = static_cast<size_t>(tier);
    stats.shadow_capacity[t] = ranks.duel(tier).capacity();
    stats.shadow_switches[t] = ranks.duel(tier).switches();
    stats.shadow_leader[t] = ranks.duel(tier).leader();
  }
  stats.shadow_bytes = ranks.memory_bytes();
  stats.pinned_blocks = ranks.pins().pinned();
  stats.expired_pins = ranks.pins().expired();
}

}  // namespace

Result<std::unique_ptr<BlockCache>> BlockCache::open(const BlockCacheOptions& options,
                                                     Device& device) {
  EMBER_ASSIGN(RamPlan plan, plan_ram(options.ram_bytes, options.layout, options.request_tokens));
  StoreParts parts;
  if (!options.store_path.empty()) {
    EMBER_ASSIGN(DiskPlan disk, plan_disk(options.disk_bytes, options.settings.access_log_bytes));
    disk.free_floor_bytes = options.settings.free_floor_bytes;
    disk.write_bytes_per_s = options.settings.write_bytes_per_s;
    EMBER_ASSIGN(parts, StoreParts::open(options.store_path, disk, plan.memtable_bytes,
                                         plan.block_cache_bytes, nullptr, options.encryption));
  }
  EMBER_ASSIGN(std::unique_ptr<BlockCacheImpl> cache,
               BlockCacheImpl::make(options, CacheTuning{}, plan, std::move(parts), device));
  return std::unique_ptr<BlockCache>(std::move(cache));
}

Result<std::unique_ptr<BlockCacheImpl>> BlockCacheImpl::make(const BlockCacheOptions& options,
                                                             const CacheTuning& tuning,
                                                             const RamPlan& plan, StoreParts parts,
                                                             Device& device) {
  EMBER_ASSIGN(std::unique_ptr<DevicePool> device_pool,
               DevicePool::make(device, options.layout, plan.device_slots));
  EMBER_ASSIGN(std::unique_ptr<HostTier> host_tier,
               HostTier::make(device, options.layout, plan.host_slots));
  return std::unique_ptr<BlockCacheImpl>(new BlockCacheImpl(options, tuning, plan, std::move(parts),
                                                            device, std::move(device_pool),
                                                            std::move(host_tier)));
}

BlockCacheImpl::BlockCacheImpl(const BlockCacheOptions& options, const CacheTuning& tuning,
                               const RamPlan& plan, StoreParts parts, Device& device,
                               std::unique_ptr<DevicePool> device_pool,
                               std::unique_ptr<HostTier> host_tier)
    : options_(options),
      device_(device),
      clock_(options.clock != nullptr ? *options.clock : system_clock()),
      layout_(options.layout),
      plan_(plan),
      parts_(std::move(parts)),
      health_(clock_),
      scopes_(parts_.secret, options.name_space, options.tenants),
      device_pool_(std::move(device_pool)),
      host_tier_(std::move(host_tier)),
      ledger_(scopes_, layout_.block_tokens(), *device_pool_, *host_tier_, clock_,
              {.policy = options.settings.eviction,
               .numerics_build = options.numerics_build,
               .device_slots = plan.device_slots,
               .host_slots = plan.host_slots}),
      context_{.device = device,
               .clock = clock_,
               .layout = layout_,
               .tickets = tickets_,
               .device_pool = *device_pool_,
               .host_tier = *host_tier_,
               .scopes = scopes_,
               .ledger = ledger_,
               .tails = tails_,
               .counters = counters_,
               .health = health_,
               .tuning = tuning,
               .name_space = options.name_space,
               .numerics_build = options.numerics_build,
               .limits = {options.settings.write_bytes_per_day, options.settings.max_age_us,
                          plan.index_bytes, plan.staging_bytes}},
      restores_(context_),
      prefetcher_(context_),
      offload_(context_),
      dedup_(context_),
      reopening_(context_, offload_),
      scrubber_(context_, parts_.secret),
      warm_up_(context_),
      shadows_(context_),
      accesses_(device, tickets_),
      live_view_(context_, offload_, parts_),
      live_edits_(context_, offload_) {
  context_.flush_age_us = options.settings.flush_age_us;
  context_.reads = &reads_;
  context_.damaged = [this](BlockId block) { block_damaged(block); };
  context_.kept_host_slots = [this] { return prefetcher_.kept_slots(); };
  adopt_store(!options.store_path.empty());
}

void BlockCacheImpl::adopt_store(bool asked_for) {
  if (!asked_for) return;
  const bool usable = parts_.disk != nullptr;
  health_.open_as(usable ? StoreState::kOk : StoreState::kUnusable, parts_.reason);
  if (!usable) return;
  context_.disk = parts_.disk.get();
  context_.conversations = parts_.conversations.get();
  context_.writable = parts_.writable;
  context_.disk_limit_bytes = parts_.plan.blocks_bytes;
  context_.tails_limit_bytes = parts_.plan.tails_bytes;
  context_.quarantine = parts_.quarantine.get();
  if (!parts_.shadows.path.empty()) {
    shadows_.remember_in(parts_.shadows, parts_.plan.shadows_bytes);
  }
  const Status begun = reopening_.begin();
  if (begun.ok()) {
    if (parts_.directory != nullptr) scrubber_.remember_in(parts_.directory->path() + "/SCRUB");
    scrubber_.set_pace(options_.settings.scrub_bytes_per_second,
                       options_.settings.scrub_interval_us);
    write_down_namespace();
    return keep_access_log();
  }
  // What people said can be read all the same.
  health_.open_as(StoreState::kUnusable, begun.error().message + kWithoutBlocks);
  context_.disk = nullptr;
  context_.conversations = nullptr;
  parts_.disk.reset();
}

// What cannot be written down costs the text in a listing and nothing else.
void BlockCacheImpl::write_down_namespace() {
  const bool wanted = !options_.name_space_entry.fields.empty();
  if (!wanted || !parts_.writable || parts_.directory == nullptr) return;
  static_cast<void>(write_namespace_note(parts_.directory->path(), options_.name_space,
                                         options_.name_space_entry, parts_.plan.namespaces_bytes));
}

void BlockCacheImpl::keep_access_log() {
  if (!parts_.writable || parts_.directory == nullptr) return;
  const std::string& store = parts_.directory->path();
  if (options_.settings.access_log_bytes == 0) {
    std::error_code ignored;
    std::filesystem::remove_all(access_log_folder(store), ignored);
    return;
  }
  accesses_.start(store, options_.settings.access_log_bytes);
  context_.accesses = &accesses_;
  if (options_.settings.warm_up_bytes_per_second == 0) return;
  accesses_.hold();
  warm_up_.begin(store, options_.settings.warm_up_bytes_per_second, [this] { accesses_.let_go(); });
}

BlockCacheImpl::~BlockCacheImpl() {
  EMBER_CHECK(open_chains_ == 0, "the cache closes while a chain is open");
  reopening_.stop();
  // The write lane keeps its order: behind this task no conversation is being written any more.
  tickets_.on(device_.run_host(HostLane::kWrite, [] { return Status{}; }), [](const Status&) {});
  offload_.close();
  scrubber_.close();
  warm_up_.stop();
  shadows_.close();
  pump();
  const int64_t patience_until = system_clock().now_us() + context_.tuning.close_patience_us;
  std::array<Completion, 64> completions;
  while (busy() || offload_.unflushed() || tickets_.waiting() > 0) {
    const int64_t now = system_clock().now_us();
    // Work under way is always waited for: it reads and writes our memory.
    if (now > patience_until) {
      offload_.give_up_all();
      shadows_.give_up();
    }
    const size_t count = device_.wait_any(now + 50'000, completions);
    for (size_t i = 0; i < count; ++i) tickets_.complete(completions[i]);
    pump();
  }
}

void BlockCacheImpl::pump() {
  recall_some();
  restores_.pump();
  offload_.advance();
  restores_.pump();  // host slots may have come free
  prefetcher_.advance(restores_.busy());
  scrubber_.advance(restores_.busy() || prefetcher_.reading());
  warm_up_.advance(restores_.busy() || offload_.busy() || dedup_.busy() || prefetcher_.reading());
  accesses_.advance();
  shadows_.advance();
}

// The last step gives back what a million blocks took: too much memory for a visit.
void BlockCacheImpl::recall_some() {
  ledger_.ranks().recall_some(kRecalledAtOnce);
  std::optional<EvictionRanks::Told> told = ledger_.ranks().take_told();
  if (!told || told->by_use.capacity() <= kRecalledAtOnce) return;
  const auto gone = std::make_shared<EvictionRanks::Told>(std::move(*told));
  tickets_.on(device_.run_host(HostLane::kRead,
                               [gone]() -> Status {
                                 *gone = {};
                                 return {};
                               }),
              [](const Status&) {});
}

void BlockCacheImpl::tick() {
  ledger_.ranks().expire_pins(clock_.now_us());
  take_lost_blocks();
  look_at_disk();
  pump();
}

void BlockCacheImpl::look_at_disk() {
  const int64_t now = clock_.now_us();
  if (context_.disk == nullptr || now < next_look_us_) return;
  next_look_us_ = now + 1'000'000;
  const DiskTierStats disk = context_.disk->stats();
  health_.tell(HealthTopic::kDisk, disk.health == "ok" ? std::string() : disk.health);
}

// Where the cache has another copy that is written again; else the block is a hole until it is
// computed again.
void BlockCacheImpl::block_damaged(BlockId block) {
  ++counters_.damaged_blocks;
  offload_.write_again(ledger_.entry(block).hash);
}

// What the disk tier could not save when an epoch had to go.
void BlockCacheImpl::take_lost_blocks() {
  if (context_.disk == nullptr) return;
  for (const BlockHash& hash : context_.disk->take_lost()) {
    const BlockId block = ledger_.index().find(hash);
    if (block != kNoBlock && ledger_.entry(block).in(Tier::kDisk)) block_damaged(block);
  }
}

bool BlockCacheImpl::handle(const Completion& completion) {
  if (!tickets_.complete(completion)) return false;
  pump();
  return true;
}

bool BlockCacheImpl::busy() const {
  return restores_.busy() || offload_.busy() || dedup_.busy() || warm_up_.reading() ||
         prefetcher_.reading();
}

Ticket BlockCacheImpl::sync(std::string_view tenant) {
  const ScopeId scope = tenant_scope(tenant);
  if (!tenant.empty() && scope == kNoScope) return {};  // nothing of it is there to wait for
  const Ticket ticket = offload_.sync(scope);
  pump();
  return ticket;
}

Ticket BlockCacheImpl::snapshot(const std::string& target) {
  const Ticket done = device_.external_ticket();
  if (context_.disk == nullptr || parts_.directory == nullptr) {
    device_.post(done, {ErrorCode::kUnsupported, target + ": there is no store to copy"});
    return done;
  }
  DiskTier* disk = context_.disk;
  Conversations* conversations = context_.conversations;
  const std::string store = parts_.directory->path();
  const Ticket taken =
      device_.run_host(HostLane::kWrite, [store, target, disk, conversations]() -> Status {
        return take_snapshot(store, target, *disk, conversations);
      });
  tickets_.on(taken, [this, done](const Status& status) { device_.post(done, status); });
  return done;
}

BlockCacheStats BlockCacheImpl::stats() const {
  BlockCacheStats stats = counters_;
  stats.health = health_.now();
  scrubber_.add_to(stats);
  warm_up_.add_to(stats);
  stats.prefetched_blocks = prefetcher_.read_blocks();
  stats.prefetch_slots = prefetcher_.slots();
  for (Tier tier : kAllTiers) {
    stats.blocks[static_cast<size_t>(tier)] = ledger_.index().count(tier);
  }
  stats.capacity_blocks[static_cast<size_t>(Tier::kDevice)] = plan_.device_slots;
  stats.capacity_blocks[static_cast<size_t>(Tier::kHost)] = plan_.host_slots;
  stats.indexed_blocks = ledger_.index().size();
  stats.tail_records = tails_.size();
  stats.holes = ledger_.holes();
  stats.loading = context_.loading;
  stats.access_entries = accesses_.recorded();
  stats.access_dropped = accesses_.dropped();
  stats.unreadable_records = reopening_.unreadable();
  stats.evicted_blocks += ledger_.evicted();
  stats.read_retries = reads_.retried;
  if (parts_.quarantine != nullptr) {
    const QuarantineStats kept = parts_.quarantine->stats();
    stats.quarantined_records = kept.records;
    stats.quarantine_bytes = kept.bytes;
    stats.quarantine_dropped = kept.dropped + kept.refused;
  }
  stats.waiting_blocks = offload_.waiting();
  stats.budget_left_bytes = offload_.budget_left_bytes();
  stats.index_bytes = ledger_.memory_bytes();
  const BlockLedger::Census census = ledger_.census();
  stats.stranded = census.stranded + reopening_.unreachable();
  stats.foreign_blocks = offload_.foreign_count() + census.foreign_builds;
  stats.blocks[static_cast<size_t>(Tier::kDisk)] -= census.tails_on_disk;
  add_eviction_stats(ledger_.ranks(), stats);
  if (context_.disk != nullptr) {
    const DiskTierStats disk = context_.disk->stats();
    stats.disk_bytes = disk.file_bytes;
    stats.disk_limit_bytes = options_.disk_bytes;
    stats.stored_bytes = disk.stored_bytes;
    stats.raw_bytes = disk.raw_bytes;
    stats.written_bytes = disk.written_bytes + shadows_.written_bytes();
    stats.lost_blocks = disk.lost_blocks;
    stats.lost_epochs = disk.lost_epochs;
    stats.free_bytes = disk.free_bytes;
    stats.free_floor_bytes = disk.free_floor_bytes;
    stats.ballast_bytes = disk.ballast_bytes;
    stats.ballast_releases = disk.ballast_releases;
    stats.accepted_bytes = disk.accepted_bytes;
    stats.rewritten_bytes = disk.rewritten_bytes;
    stats.retired_epochs = disk.retired_epochs;
    if (stats.health.state == StoreState::kOk && disk.health != "ok") {
      stats.health = {StoreState::kDegraded, disk.health, clock_.unix_us()};
    }
  }
  if (context_.conversations != nullptr) stats.disk_bytes += context_.conversations->file_bytes();
  stats.disk_bytes += stats.quarantine_bytes + shadows_.file_bytes();
  return stats;
}

}  // namespace ember
