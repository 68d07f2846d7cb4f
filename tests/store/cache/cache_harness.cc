// The oracle's rows and the engine's loop around a cache.
#include "tests/store/cache/cache_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/prng.h"

namespace ember::testing {
namespace {

constexpr uint32_t kRowValues = 8;

uint64_t next_prefix(uint64_t prefix, TokenId token) {
  return mix64(prefix * 31 + static_cast<uint64_t>(static_cast<uint32_t>(token)) + 1);
}

}  // namespace

CacheHarness::CacheHarness(HarnessOptions options, MemoryStore& store)
    : options_(options), store_(store) {
  device_ = options.sim_seed != 0 ? make_sim_device(options.sim_seed)
                                  : make_cpu_device({.workers = 1, .host_workers = 4});
  if (options.wrap_device) device_ = options.wrap_device(std::move(device_));
  Stream stream;
  stream.row_values = kRowValues;
  layout_ = KvLayout(options.layers, options.span, stream, options.layers_per_group);
  reopen();
}

CacheHarness::~CacheHarness() { close(); }

void CacheHarness::close() { cache_.reset(); }

void CacheHarness::reopen() {
  close();
  BlockCacheOptions options;
  options.layout = layout_;
  options.name_space.bytes[0] = options_.name_space;
  options.numerics_build = options_.numerics_build;
  options.clock = options_.clock;
  options.store_path = options_.store ? "memory" : "";
  options.disk_bytes = options_.disk_bytes;
  options.settings.access_log_bytes = options_.access_log_bytes;
  options.settings.warm_up_bytes_per_second = options_.warm_up_bytes_per_second;
  options.tenants = options_.tenants;
  options.settings.scrub_bytes_per_second = options_.scrub_bytes_per_second;
  options.settings.write_bytes_per_day = options_.write_bytes_per_day;
  options.settings.max_age_us = options_.max_age_us;
  RamPlan plan;
  plan.index_bytes = options_.index_bytes;
  plan.staging_bytes = options_.staging_bytes;
  plan.device_slots = options_.device_slots;
  plan.host_slots = options_.host_slots;
  StoreParts parts;
  if (options_.parts) {
    options.store_path = options_.path;
    parts = options_.parts();
  } else if (!options_.path.empty()) {
    options.store_path = options_.path;
    Result<DiskPlan> disk_plan = plan_disk(options_.disk_bytes);
    ASSERT_TRUE(disk_plan.ok()) << disk_plan.error().message;
    if (options_.blocks_bytes != 0) disk_plan->blocks_bytes = options_.blocks_bytes;
    auto opened = StoreParts::open(options_.path, *disk_plan, 8u << 20, 1u << 20, options_.base,
                                   options_.encryption);
    if (!opened.ok() && options_.may_fail_to_open) return;
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    parts = std::move(*opened);
  } else if (options_.store) {
    parts.disk = open_memory_disk(store_);
    parts.conversations = open_memory_conversations(store_);
    parts.plan.blocks_bytes = store_.limit_bytes;
    parts.plan.tails_bytes = 1u << 20;
    parts.writable = options_.writable;
    if (!options_.quarantine.empty()) {
      parts.quarantine = Quarantine::open(options_.quarantine, 1u << 20);
    }
  }
  if (options_.around_disk) parts.disk = options_.around_disk(std::move(parts.disk));
  auto cache =
      BlockCacheImpl::make(options, options_.tuning, plan, std::move(parts), *device_);
  ASSERT_TRUE(cache.ok()) << cache.error().message;
  cache_ = std::move(*cache);
}

std::byte* CacheHarness::row(const Chain& chain, size_t token, uint32_t layer) {
  LatentCacheView view = cache_->layer_view(layer);
  view.block_tables = chain.block_table().data();
  view.table_stride = chain.block_table().size();
  return view.row(0, static_cast<int32_t>(token));
}

std::vector<std::byte> CacheHarness::oracle_row(uint64_t prefix, uint32_t layer) const {
  std::vector<std::byte> bytes(layout_.row_bytes());
  for (size_t i = 0; i < kRowValues; ++i) {
    // Exponents around those of latents; never a NaN, so poison shows.
    const auto bits = static_cast<uint16_t>(0x3c00 + (counter_random(prefix, layer, i) & 0x3ff));
    std::memcpy(bytes.data() + 2 * i, &bits, sizeof bits);
  }
  return bytes;
}

void CacheHarness::expect_rows(const Chain& chain, const std::vector<TokenId>& tokens,
                               size_t count) {
  uint64_t prefix = 0;
  for (size_t t = 0; t < count; ++t) {
    prefix = next_prefix(prefix, tokens[t]);
    for (uint32_t layer = 0; layer < layout_.layers(); ++layer) {
      const std::vector<std::byte> expected = oracle_row(prefix, layer);
      ASSERT_EQ(0, std::memcmp(expected.data(), row(chain, t, layer), expected.size()))
          << "token " << t << " of " << count << ", layer " << layer;
    }
  }
}

void CacheHarness::compute(Chain& chain, const std::vector<TokenId>& tokens) {
  uint64_t prefix = 0;
  for (size_t t = 0; t < tokens.size(); ++t) {
    prefix = next_prefix(prefix, tokens[t]);
    if (t < chain.length()) continue;
    for (uint32_t layer = 0; layer < layout_.layers(); ++layer) {
      const std::vector<std::byte> bytes = oracle_row(prefix, layer);
      std::memcpy(row(chain, t, layer), bytes.data(), bytes.size());
    }
  }
  const auto computed = static_cast<std::ptrdiff_t>(chain.length());
  cache_->commit(chain, TokenSpan(tokens.begin() + computed, tokens.end()));
}

std::unique_ptr<Chain> CacheHarness::open_chain(const std::vector<TokenId>& tokens,
                                                size_t restore_tokens, const RequestScope& scope) {
  auto chain = cache_->open_chain(tokens, restore_tokens, tokens.size(), scope);
  for (int i = 0; i < 100000 && !chain.ok(); ++i) {
    if (chain.error().code != ErrorCode::kCapacity || !cache_->busy()) return nullptr;
    step();
    chain = cache_->open_chain(tokens, restore_tokens, tokens.size(), scope);
  }
  return chain.ok() ? std::move(*chain) : nullptr;
}

void CacheHarness::step() {
  std::array<Completion, 16> completions;
  const size_t count = device_->wait_any(system_clock().now_us() + 20'000, completions);
  for (size_t i = 0; i < count; ++i) {
    if (!cache_->handle(completions[i])) {
      EXPECT_EQ(completions[i].ticket, awaited_) << "a ticket that nobody knows";
      awaited_done_ = true;
      awaited_status_ = completions[i].status;
    }
  }
  if (count == 0) cache_->tick();
  options_.after_step();
}

void CacheHarness::wait_ready(const Chain& chain) {
  for (int i = 0; i < 1'000'000 && !chain.ready(); ++i) step();
  ASSERT_TRUE(chain.ready());
}

void CacheHarness::drain() {
  for (int i = 0; i < 1'000'000 && cache_->busy() && !options_.cut_off(); ++i) step();
  ASSERT_TRUE(!cache_->busy() || options_.cut_off());
}

Status CacheHarness::await(Ticket ticket, const std::function<void()>& meanwhile) {
  awaited_ = ticket;
  awaited_done_ = !awaited_;
  awaited_status_ = {};
  for (int i = 1; i < 1'000'000 && !awaited_done_ && !options_.cut_off(); ++i) {
    step();
    if (meanwhile && i % 16 == 0) meanwhile();
  }
  EXPECT_TRUE(awaited_done_ || options_.cut_off());
  if (!awaited_done_) awaited_status_ = Error{ErrorCode::kCancelled, "cut off"};
  return awaited_status_;
}

Status CacheHarness::try_sync(const std::function<void()>& meanwhile) {
  return await(cache_->sync(), meanwhile);
}

Status CacheHarness::snapshot(const std::string& target) {
  return await(cache_->snapshot(target));
}

Status CacheHarness::sync_for(std::string_view tenant) { return await(cache_->sync(tenant)); }

CacheHarness::Outcome CacheHarness::feed(const std::vector<TokenId>& tokens, bool tail,
                                         bool use_cache, const RequestScope& scope) {
  Outcome outcome;
  BlockCache::Match match;
  if (use_cache) match = cache_->match(tokens, scope);
  for (int i = 0; i < 100'000 && match.looking_up; ++i) {
    step();
    match = cache_->match(tokens, scope);
  }
  outcome.matched = match.tokens;
  const std::unique_ptr<Chain> chain = open_chain(tokens, outcome.matched, scope);
  if (chain == nullptr) return outcome;
  outcome.opened = true;
  wait_ready(*chain);
  outcome.restored = chain->length();
  outcome.report = chain->restore_report();
  EXPECT_EQ(outcome.report.total(), outcome.restored);
  expect_rows(*chain, tokens, chain->length());
  compute(*chain, tokens);
  expect_rows(*chain, tokens, tokens.size());
  if (tail) cache_->commit_tail(*chain);
  return outcome;
}

void CacheHarness::expect_sound() {
  cache_->check_invariants();
  const BlockCacheStats stats = cache_->stats();
  EXPECT_EQ(stats.stranded, 0u);
  EXPECT_EQ(cache_->ledger().census(), cache_->ledger().full_census()) << "counted, and by a scan";
  EXPECT_EQ(store_.order_faults, 0u);
}

std::vector<TokenId> CacheHarness::tokens(uint64_t seed, size_t count) {
  std::vector<TokenId> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<TokenId>(counter_random(seed, 1, i) % 50'000);
  }
  return tokens;
}

BlockHash CacheHarness::hash_of(const std::vector<TokenId>& tokens, size_t position) const {
  const BlockHasher hasher(HashSecret{}, [&] {
    NamespaceHash name_space;
    name_space.bytes[0] = options_.name_space;
    return name_space;
  }(), "shared");
  BlockHash hash = hasher.root();
  for (size_t i = 0; i <= position; ++i) {
    const size_t first = i * options_.span;
    const size_t count = std::min<size_t>(options_.span, tokens.size() - first);
    hash = hasher.next(hash, TokenSpan(tokens).subspan(first, count));
  }
  return hash;
}

}  // namespace ember::testing
