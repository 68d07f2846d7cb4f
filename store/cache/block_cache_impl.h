// Block cache, inside: composes index, tiers, restore and offload behind the one face.
//
// Journey    block_cache -> [block_cache_impl] -> ledger, chains, executors
// Owns       every part of the cache; nothing outlives it but the device
// Invariant  each completion, commit and tick lets both executors go on; nothing waits here but
//            the destructor
// Threads    engine thread only
// Not here   the parts' own rules
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prefix_index/block_hash.h"
#include "store/block_cache.h"
#include "store/cache/access_recorder.h"
#include "store/cache/cache_context.h"
#include "store/cache/chain.h"
#include "store/cache/dedup_check.h"
#include "store/cache/live_edits_impl.h"
#include "store/cache/live_view_impl.h"
#include "store/cache/offload_executor.h"
#include "store/cache/prefetcher.h"
#include "store/cache/reopening.h"
#include "store/cache/restore_executor.h"
#include "store/cache/scope_book.h"
#include "store/cache/scrubber.h"
#include "store/cache/shadow_keeper.h"
#include "store/cache/store_parts.h"
#include "store/cache/warm_up.h"

namespace ember {

class BlockCacheImpl final : public BlockCache {
 public:
  // `parts` as opened (or fakes, in tests); without a disk only the RAM tiers work.
  static Result<std::unique_ptr<BlockCacheImpl>> make(const BlockCacheOptions& options,
                                                      const CacheTuning& tuning,
                                                      const RamPlan& plan, StoreParts parts,
                                                      Device& device);
  ~BlockCacheImpl() override;

  Match match(TokenSpan prompt, const RequestScope& scope = {}) override;
  Result<std::unique_ptr<Chain>> open_chain(TokenSpan prompt, size_t restore_tokens,
                                            size_t max_tokens, const RequestScope& scope = {},
                                            int64_t patience_us = 0) override;
  std::unique_ptr<Prefetch> prefetch(TokenSpan prompt, size_t tokens,
                                     const RequestScope& scope = {}) override;
  void commit(Chain& chain, TokenSpan tokens) override;
  void commit_tail(Chain& chain) override;
  void hint(Chain& chain, const UseHint& hint) override;
  void hint(TokenSpan prefix, const UseHint& hint, const RequestScope& scope = {}) override;
  Result<size_t> pin(TokenSpan prefix, int64_t ttl_us, const RequestScope& scope = {}) override;
  Ticket snapshot(const std::string& target) override;
  Ticket sync(std::string_view tenant = {}) override;
  void tick() override;
  Status forget(const ForgetRequest& request, ForgetDone done) override;
  bool handle(const Completion& completion) override;
  bool busy() const override;
  bool loading() const override { return context_.loading; }

  const KvLayout& layout() const override { return layout_; }
  LatentCacheView layer_view(uint32_t layer) const override {
    return device_pool_->layer_view(layer);
  }
  Conversations* conversations() override { return parts_.conversations.get(); }
  const StoreHealth& health() const override { return health_.now(); }
  const RamPlan& ram_plan() const override { return plan_; }
  BlockCacheStats stats() const override;

  const LiveView& live_view() const override { return live_view_; }
  LiveEdits& live_edits() override { return live_edits_; }

  void drop_tier(Tier tier) override { ledger_.drop_tier(tier); }
  std::vector<Row> rows() const override;
  std::vector<QuarantineRow> quarantined() const override {
    return parts_.quarantine == nullptr ? std::vector<QuarantineRow>() : parts_.quarantine->list();
  }
  std::vector<Row> rows_of(std::string_view tenant) const override;
  TenantStats stats_of(std::string_view tenant) const override;

  // For tests: aborts unless the index's invariants hold.
  void check_invariants() const { ledger_.index().check_invariants(); }
  // For benches: what the index holds, token ids included.
  uint64_t index_bytes() const { return ledger_.index().memory_bytes(); }
  const BlockLedger& ledger() const { return ledger_; }
  const StoreParts& parts() const { return parts_; }

 private:
  BlockCacheImpl(const BlockCacheOptions& options, const CacheTuning& tuning, const RamPlan& plan,
                 StoreParts parts, Device& device, std::unique_ptr<DevicePool> device_pool,
                 std::unique_ptr<HostTier> host_tier);

  void adopt_store(bool asked_for);
  void write_down_namespace();
  void keep_access_log();
  void pump();
  void recall_some();
  void forget_in_index(const ForgetRequest& request);
  Tier best_tier(BlockId block) const;
  void add_matches(ChainImpl& chain, TokenSpan prompt, size_t limit);
  std::optional<std::vector<SlotLease>> take_slots(ChainImpl& chain, size_t total);
  ScopeId tenant_scope(std::string_view tenant) const;
  Row row_of(BlockId block) const;
  ChainScope known_scope(const RequestScope& scope) const;
  Result<ChainScope> chain_scope(const RequestScope& scope);
  BlockHash hash_after(ScopeId scope, BlockId parent, TokenSpan tokens) const;
  ScopeId scope_of_next(const ChainImpl& chain, TokenSpan tokens) const;
  void commit_block(ChainImpl& chain, size_t position);
  void foresee(ChainImpl& chain, TokenSpan prompt) const;
  void tell_shadows(ChainImpl& chain);
  void hint_blocks(std::span<const BlockId> blocks, const UseHint& hint);
  std::vector<BlockId> known_blocks(TokenSpan prefix, const RequestScope& scope) const;
  size_t lowest_tier_blocks() const;
  bool heals(BlockId block) const;
  bool must_store(BlockId block) const;
  void block_damaged(BlockId block);
  void take_lost_blocks();
  void look_at_disk();

  BlockCacheOptions options_;
  Device& device_;
  const Clock& clock_;
  KvLayout layout_;
  RamPlan plan_;
  StoreParts parts_;
  HealthKeeper health_;
  BlockCacheStats counters_;
  ScopeBook scopes_;
  std::unique_ptr<DevicePool> device_pool_;
  std::unique_ptr<HostTier> host_tier_;
  TicketRouter tickets_;
  BlockLedger ledger_;
  TailLedger tails_;
  ReadCounters reads_;
  CacheContext context_;
  RestoreExecutor restores_;
  Prefetcher prefetcher_;
  OffloadExecutor offload_;
  DedupCheck dedup_;
  Reopening reopening_;
  Scrubber scrubber_;
  WarmUp warm_up_;
  ShadowKeeper shadows_;
  int64_t next_look_us_ = 0;  // at the disk's own health
  AccessRecorder accesses_;
  LiveViewImpl live_view_;
  LiveEditsImpl live_edits_;
  size_t open_chains_ = 0;
};

}  // namespace ember
