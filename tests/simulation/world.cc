// The world's events, one at a time, and what must hold after them.
#include "tests/simulation/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace ember::testing {
namespace {

constexpr uint32_t kSpan = 16;
constexpr size_t kConversations = 20;
constexpr size_t kMostTokens = kSpan * 14;
constexpr uint32_t kDeviceSlots = 40;
constexpr size_t kMostActive = 5;
constexpr uint64_t kPatienceEvents = 200'000;

HarnessOptions harness_options(const WorldOptions& options, ManualClock& clock) {
  HarnessOptions harness;
  harness.sim_seed = options.seed;
  harness.layers = 2;
  harness.layers_per_group = static_cast<uint32_t>(1 + options.seed % 2);
  harness.span = kSpan;
  harness.device_slots = kDeviceSlots;
  harness.host_slots = static_cast<uint32_t>(3 + options.seed % 9);
  harness.clock = &clock;
  harness.wrap_device = [lie = options.device_lie](std::unique_ptr<Device> honest) {
    return std::make_unique<LyingDevice>(std::move(honest), lie, 23);
  };
  return harness;
}

}  // namespace

World::World(const WorldOptions& options)
    : options_(options), prng_(options.seed), weather_prng_(mix64(options.seed)) {
  store_.limit_bytes = 40'000 + options.seed % 5 * 20'000;
  make_weather();
  harness_ = std::make_unique<CacheHarness>(harness_options(options, clock_), store_);
  for (size_t i = 0; i < kConversations; ++i) conversations_.push_back({});
}

World::~World() {
  active_.clear();
  harness_.reset();
}

WorldReport World::run() {
  while (report_.finished < options_.requests && !::testing::Test::HasFatalFailure()) event();
  active_.clear();
  // The weather clears: from here on all must come right again.
  write_trouble_ = read_trouble_ = flush_trouble_ = 0;
  sync();
  restart();
  expect_no_leak();
  return report_;
}

void World::event() {
  for (Active& active : active_) {
    ASSERT_LT(++active.waited, kPatienceEvents) << "a request that nothing moves";
  }
  const uint64_t what = prng_.below(1000);
  if (what < 120) {
    if (active_.size() < kMostActive) open_one();
  } else if (what < 480) {
    if (!active_.empty()) advance_one();
  } else if (what < 490) {
    pass_time();
  } else if (what < 496) {
    sync();
  } else if (what < 499) {
    harness_->cache().drop_tier(chance(2) ? Tier::kDevice : Tier::kHost);
  } else if (what < 502 && options_.faults) {
    change_weather();
  } else if (what < 504 && options_.faults) {
    damage_one();
  } else if (what < 505) {
    if (chance(4)) options_.faults && chance(2) ? cut_power() : restart();
  } else {
    harness_->step();
  }
}

// --- requests

void World::open_one() {
  Active active;
  active.conversation = prng_.below(kConversations);
  Conversation& conversation = conversations_[active.conversation];
  const bool grown = conversation.tokens.size() > kMostTokens - kSpan * 4;
  if (conversation.id == 0 || grown) {
    conversation.id = ++next_conversation_;
    // A third of the users share each system prompt, which ends within a block.
    conversation.tokens = CacheHarness::tokens(900 + conversation.id % 3, kSpan * 2 + 5);
  }
  active.tokens = conversation.tokens;
  // An earlier turn is edited now and then: a branch within the conversation.
  if (chance(8)) active.tokens.resize(1 + prng_.below(active.tokens.size()));
  const auto user = CacheHarness::tokens(prng_(), 1 + prng_.below(kSpan * 2));
  active.tokens.insert(active.tokens.end(), user.begin(), user.end());
  active.prompt = active.tokens.size();
  const auto answer = CacheHarness::tokens(prng_(), 1 + prng_.below(kSpan));
  active.tokens.insert(active.tokens.end(), answer.begin(), answer.end());

  const TokenSpan prompt = TokenSpan(active.tokens).first(active.prompt);
  const size_t known = harness_->cache().match(prompt).tokens;
  EXPECT_LT(known, active.prompt);
  auto chain = harness_->cache().open_chain(prompt, chance(6) ? prng_.below(known + 1) : known,
                                            active.tokens.size());
  if (!chain.ok()) {
    EXPECT_EQ(chain.error().code, ErrorCode::kCapacity) << chain.error().message;
    ++report_.crowded_out;
    return;
  }
  active.chain = std::move(*chain);
  active_.push_back(std::move(active));
}

void World::advance_one() {
  const size_t index = prng_.below(active_.size());
  Active& active = active_[index];
  if (chance(60)) {
    ++report_.cancelled;
    if (active.started && chance(2)) harness_->cache().commit_tail(*active.chain);
    return drop(index);
  }
  if (!active.chain->ready()) return;
  if (!active.started) return start(active);
  if (active.chain->length() < active.tokens.size()) return compute_some(active);
  finish(index);
}

void World::start(Active& active) {
  active.started = true;
  const size_t restored = active.chain->length();
  EXPECT_LT(restored, active.prompt);
  EXPECT_EQ(active.chain->restore_report().total(), restored);
  harness_->expect_rows(*active.chain, active.tokens, restored);
  report_.restored_tokens += restored;
  report_.computed_tokens += active.prompt - restored;
}

// A chunk of the prompt, or one token of the answer.
void World::compute_some(Active& active) {
  const size_t from = active.chain->length();
  const size_t count =
      from < active.prompt ? std::min(active.prompt - from, size_t{1} + prng_.below(kSpan * 3)) : 1;
  const auto end = active.tokens.begin() + static_cast<std::ptrdiff_t>(from + count);
  const std::vector<TokenId> so_far(active.tokens.begin(), end);
  harness_->compute(*active.chain, so_far);
}

void World::finish(size_t index) {
  Active& active = active_[index];
  harness_->expect_rows(*active.chain, active.tokens, active.tokens.size());
  if (!chance(5)) harness_->cache().commit_tail(*active.chain);
  conversations_[active.conversation].tokens = active.tokens;
  ++report_.finished;
  drop(index);
}

void World::drop(size_t index) {
  active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(index));
}

// --- weather and fate

void World::make_weather() {
  const auto strikes = [this](uint64_t one_in) {
    return one_in != 0 && weather_prng_.below(one_in) == 0;
  };
  store_.before_put = [this, strikes](const BlockHash&) -> Status {
    if (stopped_) return {ErrorCode::kIo, "simulated: no power"};
    if (!strikes(write_trouble_)) return {};
    ++report_.refused_writes;
    switch (weather_prng_.below(3)) {
      case 0: return {ErrorCode::kBusy, "simulated: stalled"};
      case 1: return {ErrorCode::kCapacity, "simulated: full"};
      default: return {ErrorCode::kIo, "simulated: write error"};
    }
  };
  store_.before_read = [this, strikes](const BlockHash&, uint32_t) -> Status {
    if (!strikes(read_trouble_)) return {};
    ++report_.failed_reads;
    return {ErrorCode::kIo, "simulated: read error"};
  };
  store_.before_flush = [this, strikes]() -> Status {
    if (stopped_) return {ErrorCode::kIo, "simulated: no power"};
    if (!strikes(flush_trouble_)) return {};
    ++report_.failed_flushes;
    return {weather_prng_.below(2) == 0 ? ErrorCode::kIo : ErrorCode::kBusy, "simulated: flush"};
  };
  store_.before_erase = [this]() -> Status {
    return stopped_ ? Status(ErrorCode::kIo, "simulated: no power") : Status();
  };
  if (options_.disk_lie == DiskLie::kFlushNotMade) {
    store_.swallow_flush = [this] { return weather_prng_.below(4) == 0; };
  }
  if (options_.disk_lie == DiskLie::kWrongBytes) {
    store_.after_read = [this](Bytes raw) {
      if (weather_prng_.below(40) == 0) raw[raw.size() / 2] ^= std::byte{1};
    };
  }
}

void World::change_weather() {
  const auto draw = [this] { return chance(2) ? 0 : 2 + prng_.below(12); };
  write_trouble_ = draw();
  read_trouble_ = draw();
  flush_trouble_ = draw();
}

void World::damage_one() {
  MutexLock lock(store_.mutex);
  auto& records = chance(4) ? store_.tails : store_.blocks;
  if (records.empty()) return;
  auto record = records.begin();
  std::advance(record, static_cast<std::ptrdiff_t>(prng_.below(records.size())));
  std::string& payload = record->second.payloads[prng_.below(record->second.payloads.size())];
  payload[prng_.below(payload.size())] ^= static_cast<char>(1 << prng_.below(8));
  ++report_.damaged;
}

void World::pass_time() {
  if (!chance(20)) return clock_.advance_us(static_cast<int64_t>(prng_.below(300'000)));
  for (const Active& active : active_) report_.missed_deadlines += active.chain->ready() ? 0u : 1u;
  clock_.advance_us(31'000'000);
}

void World::sync() {
  std::set<BlockHash> committed;
  for (const BlockCache::Row& row : harness_->cache().rows()) {
    if (!row.damaged) committed.insert(row.hash);
  }
  const BlockCacheStats before = harness_->cache().stats();
  const Status status = harness_->try_sync([this] { clock_.advance_us(50'000); });
  if (status.ok()) expect_all_durable(committed, before.offload_failures);
}

void World::restart() {
  active_.clear();
  harness_->reopen();
  ++report_.restarts;
  harness_->drain();
  expect_accounts();
}

void World::cut_power() {
  active_.clear();
  stopped_ = true;
  harness_->close();
  store_.lose_unflushed();
  stopped_ = false;
  harness_->reopen();
  ++report_.power_cuts;
  harness_->drain();
  expect_accounts();
}

// --- the oracle

// Every block that was committed before a good sync and is still said to be on disk would survive a
// power cut; those that are not on disk were given up, evicted or found damaged, and counted.
void World::expect_all_durable(const std::set<BlockHash>& committed, uint64_t failures_before) {
  const BlockCacheStats stats = harness_->cache().stats();
  if (stats.health.state == StoreState::kUnusable) return;
  size_t missing = 0;
  for (const BlockCache::Row& row : harness_->cache().rows()) {
    if (!committed.contains(row.hash) || row.damaged) continue;
    if (!row.in[static_cast<size_t>(Tier::kDisk)]) {
      missing += row.token_count == kSpan ? 1 : 0;  // a tail goes when a longer record is there
      continue;
    }
    MutexLock lock(store_.mutex);
    const auto& records = row.token_count < kSpan ? store_.tails : store_.blocks;
    const auto found = records.find(row.hash);
    EXPECT_TRUE(found != records.end() && found->second.flushed)
        << "position " << row.position << ": reported durable, and a power cut would lose it";
  }
  const uint64_t counted = stats.offload_failures + stats.evicted_blocks + stats.damaged_blocks;
  EXPECT_TRUE(missing == 0 || counted > 0) << missing << " blocks are nowhere and in no counter";
  EXPECT_GE(stats.offload_failures, failures_before);
}

void World::expect_accounts() {
  harness_->expect_sound();
  const BlockCacheStats stats = harness_->cache().stats();
  if (stats.health.state == StoreState::kUnusable) return;
  const uint64_t known = stats.blocks[static_cast<size_t>(Tier::kDisk)] + stats.foreign_blocks;
  MutexLock lock(store_.mutex);
  EXPECT_EQ(known, store_.blocks.size()) << "records that the opened cache does not know of";
}

// With no request left every slot can be had: nothing is leased for ever.
void World::expect_no_leak() {
  const auto prompt = CacheHarness::tokens(1'000'000 + options_.seed, kSpan);
  const auto chain = harness_->cache().open_chain(prompt, 0, size_t{kDeviceSlots} * kSpan);
  EXPECT_TRUE(chain.ok()) << chain.error().message;
}

}  // namespace ember::testing
