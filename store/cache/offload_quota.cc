// Quotas: before a tenant's block is written, what is too much of its own goes.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "store/cache/offload_executor.h"

namespace ember {
namespace {

// Freed together, so that a look at all of a tenant's blocks pays.
constexpr uint64_t kQuotaShare = 32;
// Of a coded group, beside its raw bytes, at the most.
constexpr uint64_t kFrameBytes = 64;

}  // namespace

// What the block takes on disk, at the most.
uint64_t OffloadExecutor::most_bytes(const OffloadJob& job) const {
  if (!job.coded.payloads.empty()) return job.coded.record.stored_bytes();
  return job.identity.tokens.size() * context_.layout.token_bytes() +
         context_.layout.group_count() * kFrameBytes;
}

// Cuts the task before the first block that has to wait. True: that block was given up, since
// nothing of its tenant's may go for it, so the queue has changed.
bool OffloadExecutor::keep_quotas(std::vector<size_t>& write) {
  std::map<ScopeId, uint64_t> pending;
  for (size_t i = 0; i < write.size(); ++i) {
    OffloadJob& job = queue_.at(write[i]);
    const ScopeId payer = context_.ledger.payer(job.block);
    if (context_.scopes.quota_bytes(payer) == 0) continue;
    const uint64_t bytes = pending[payer] + most_bytes(job);
    // Until all records are known nobody knows what the tenant has.
    const bool unknown = context_.loading && !closing_;
    if (!unknown && make_quota_room(payer, bytes)) {
      pending[payer] = bytes;
      continue;
    }
    write.resize(i);
    if (unknown) job.not_before_us = context_.clock.now_us() + context_.tuning.retry_us;
    if (unknown || i > 0) return false;
    ++context_.scopes.counters(payer).quota_refused_blocks;
    give_up(&job, {ErrorCode::kCapacity, "the tenant's quota of disk bytes is used up"});
    return true;
  }
  return false;
}

// Whether `bytes` more fit the quota; the oldest leaves of the payer's own go for them.
bool OffloadExecutor::make_quota_room(ScopeId payer, uint64_t bytes) {
  const uint64_t quota = context_.scopes.quota_bytes(payer);
  ScopeCounters& counters = context_.scopes.counters(payer);
  if (counters.disk_bytes + bytes <= quota) return true;
  if (bytes > quota || context_.loading) return false;
  std::vector<ForeignRecord> evicted;
  const uint64_t over = counters.disk_bytes + bytes - quota;
  for (const BlockLedger::DiskVictim& victim :
       context_.ledger.take_victims_of(payer, std::max(over, quota / kQuotaShare))) {
    ++counters.quota_evicted_blocks;
    if (victim.tail) {
      context_.tails.erase(victim.hash);
      doomed_tails_.push_back(victim.hash);
    } else {
      evicted.push_back({victim.hash, 0, victim.stored_bytes});
    }
  }
  erase_due_ = erase_due_ || !evicted.empty();
  remember_evicted(evicted, false);
  return counters.disk_bytes + bytes <= quota;
}

// Before any other write, so that none is erased that came back. False: there is nothing to erase.
bool OffloadExecutor::erase_evicted() {
  if (!erase_due_ && !context_.ledger.has_stale_records()) return false;
  erase_due_ = false;
  Victims victims;
  add_evicted(victims);
  if (victims.empty()) return false;
  erase_victims(std::move(victims), 0);
  return true;
}

}  // namespace ember
