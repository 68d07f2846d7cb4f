// Cache context: what the parts of the block cache share.
//
// Journey    block_cache -> [cache_context] -> restore_executor, offload_executor, chains
// Owns       nothing; every reference outlives the parts
// Threads    engine thread only
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "kernels/device.h"
#include "store/block_cache.h"
#include "store/cache/block_coder.h"
#include "store/cache/block_ledger.h"
#include "store/cache/health_keeper.h"
#include "store/cache/scope_book.h"
#include "store/cache/tail_ledger.h"
#include "store/cache/ticket_router.h"

namespace ember {

// Limits of patience. Tests make them shorter.
struct CacheTuning {
  int64_t restore_deadline_us = 30'000'000;  // then what is not there yet counts as missed
  int64_t retry_us = 100'000;                // after a refused write; doubled with each refusal
  int64_t close_patience_us = 30'000'000;    // for what is not yet written when the cache closes
  int64_t busy_patience_us = 60'000'000;     // for a disk that only asks for pauses
  int64_t lane_patience_us = 30'000'000;     // for one task of the write lane
  uint32_t write_attempts = 3;               // then a block is given up
  uint32_t eviction_rounds = 6;              // for one block that does not fit
  size_t records_at_opening = 2048;          // read before open returns: some 10 ms
  size_t records_of_a_step = 2048;           // read by one task of the background's
};

class AccessRecorder;

// What the user has set: see StoreSettings; and shares of the RAM plan.
struct OffloadLimits {
  uint64_t write_bytes_per_day = 0;
  int64_t max_age_us = 0;
  uint64_t index_bytes = 0;    // 0: no limit
  uint64_t staging_bytes = 0;  // of coded blocks in RAM; 0: no limit
};

struct CacheContext {
  Device& device;
  const Clock& clock;
  const KvLayout& layout;
  TicketRouter& tickets;
  DevicePool& device_pool;
  HostTier& host_tier;
  ScopeBook& scopes;
  BlockLedger& ledger;
  TailLedger& tails;
  BlockCacheStats& counters;
  HealthKeeper& health;
  CacheTuning tuning;
  // What every record of ours says.
  NamespaceHash name_space;
  uint64_t numerics_build = 0;
  OffloadLimits limits = {};
  // The store; null where there is none or a part of it is damaged.
  DiskTier* disk = nullptr;
  Conversations* conversations = nullptr;
  AccessRecorder* accesses = nullptr;  // null: no access log is kept
  bool writable = false;
  bool loading = false;  // not all records are in the index yet: nothing may leave the disk
  uint64_t disk_limit_bytes = 0;
  uint64_t tails_limit_bytes = 0;
  int64_t flush_age_us = 0;
  Quarantine* quarantine = nullptr;  // null: what is proven wrong is not kept
  ReadCounters* reads = nullptr;
  // The stored bytes of this block are proven wrong: counts it, and heals it or makes it a hole.
  std::function<void(BlockId)> damaged = {};
  // Host slots that nobody holds but requests that wait, for as long as they wait.
  std::function<size_t()> kept_host_slots = [] { return size_t{0}; };

  // Whether a lease of a host slot ends by itself, so that there is one to wait for.
  bool host_slot_comes_back() const {
    return host_tier.slots().leased_count() > kept_host_slots();
  }

  BlockReader reader() const { return {layout, *disk, conversations, quarantine, reads}; }
  BlockIdentity identity_of(BlockId block) const {
    const BlockEntry& entry = ledger.entry(block);
    BlockIdentity identity;
    identity.tail = ledger.is_tail(block);
    identity.name_space = name_space;
    identity.scope = scopes.name(ledger.index().scope(block));
    identity.publisher = ledger.publisher(block);
    identity.hash = entry.hash;
    identity.parent = ledger.parent_hash(block);
    identity.numerics_build = entry.numerics_build;
    identity.position = entry.position;
    identity.tokens = ledger.index().tokens(block);
    return identity;
  }
};

}  // namespace ember
