// What a tenant may know: its own blocks, those that it published, and what they hang under.
//
// It has sent the tokens of all of these itself. Of a shared block it learns neither the uses nor
// their times, since others use it too; where a copy is, a match tells as well.
#include <algorithm>
#include <unordered_set>

#include "store/cache/block_cache_impl.h"

namespace ember {

ScopeId BlockCacheImpl::tenant_scope(std::string_view tenant) const {
  return check_tenant_name(tenant).ok() ? scopes_.find(tenant) : kNoScope;
}

TenantStats BlockCacheImpl::stats_of(std::string_view tenant) const {
  TenantStats stats;
  const StoreState state = health().state;
  stats.store_usable = state != StoreState::kOff && state != StoreState::kUnusable;
  stats.quota_bytes = scopes_.quota_of(tenant);
  const ScopeId scope = tenant_scope(tenant);
  if (scope == kNoScope) return stats;
  const ScopeCounters& counters = scopes_.counters(scope);
  stats.disk_bytes = counters.disk_bytes;
  stats.restored_tokens = counters.restored_tokens;
  stats.committed_blocks = counters.committed_blocks;
  stats.quota_evicted_blocks = counters.quota_evicted_blocks;
  stats.quota_refused_blocks = counters.quota_refused_blocks;
  std::vector<BlockId> blocks = ledger_.index().blocks_of(scope);
  const std::vector<BlockId> published = ledger_.published_by(scope);
  blocks.insert(blocks.end(), published.begin(), published.end());
  for (BlockId block : blocks) {
    const BlockEntry& entry = ledger_.entry(block);
    const bool stored_tail = ledger_.is_tail(block) && entry.in(Tier::kDisk);
    if (stored_tail) ++stats.tail_records;
    for (Tier tier : kAllTiers) {
      const bool counts = entry.in(tier) && !(stored_tail && tier == Tier::kDisk);
      if (counts) ++stats.blocks[static_cast<size_t>(tier)];
    }
  }
  return stats;
}

BlockCache::Row BlockCacheImpl::row_of(BlockId block) const {
  const BlockEntry& entry = ledger_.entry(block);
  const BlockNotes& notes = ledger_.notes(block);
  Row row;
  row.hash = entry.hash;
  row.parent = ledger_.parent_hash(block);
  row.scope = scopes_.name(ledger_.index().scope(block));
  row.publisher = ledger_.publisher(block);
  row.position = entry.position;
  row.token_count = entry.token_count;
  row.raw_bytes = entry.token_count * layout_.token_bytes();
  row.stored_bytes = entry.in(Tier::kDisk) ? notes.stored_bytes : 0;
  row.hits = notes.earlier_hits + entry.hits;
  row.last_use_unix_us = notes.last_use_unix_us;
  for (Tier tier : kAllTiers) row.in[static_cast<size_t>(tier)] = entry.in(tier);
  row.damaged = entry.damaged;
  row.tokens = ledger_.index().tokens(block);
  return row;
}

std::vector<BlockCache::Row> BlockCacheImpl::rows() const {
  std::vector<Row> rows;
  for (BlockId block : ledger_.index().all_blocks()) rows.push_back(row_of(block));
  return rows;
}

std::vector<BlockCache::Row> BlockCacheImpl::rows_of(std::string_view tenant) const {
  const ScopeId scope = tenant_scope(tenant);
  if (scope == kNoScope) return {};
  const RadixIndex& index = ledger_.index();
  const std::vector<BlockId> own = index.blocks_of(scope);
  std::vector<BlockId> shared;
  std::unordered_set<BlockId> seen;
  const auto add_shared_from = [&](BlockId block) {
    for (; block != kNoBlock && seen.insert(block).second; block = ledger_.entry(block).parent) {
      shared.push_back(block);
    }
  };
  for (BlockId block : ledger_.published_by(scope)) add_shared_from(block);
  for (BlockId block : own) {
    const BlockId parent = ledger_.entry(block).parent;
    if (parent != kNoBlock && index.scope(parent) == kSharedScope) add_shared_from(parent);
  }
  std::sort(shared.begin(), shared.end(), [&](BlockId a, BlockId b) {
    const BlockEntry& first = ledger_.entry(a);
    const BlockEntry& second = ledger_.entry(b);
    return first.position != second.position ? first.position < second.position
                                             : first.hash < second.hash;
  });
  std::vector<Row> rows;
  for (BlockId block : shared) {
    rows.push_back(row_of(block));
    rows.back().hits = 0;
    rows.back().last_use_unix_us = 0;
    if (rows.back().publisher != tenant) rows.back().publisher.clear();
  }
  for (BlockId block : own) rows.push_back(row_of(block));
  return rows;
}

}  // namespace ember
