// Block cache: the store's one face. Match, restore, commit, sync, stat: index and tiers behind it.
//
// Journey    tokens -> [block_cache] -> latents on the device; new latents -> [block_cache] -> disk
// Owns       the radix index, the device pool, the host tier, the disk tier, the conversations
// Invariant  a row is readable by the engine only if this process computed it or its bytes were
//            proven; every failure becomes a miss: fewer restored tokens, a counter, never an error
//            of the request
// Threads    engine thread only; the Device's workers do the work, handle() takes it back
// Not here   when to run what, and whether a hit pays (engine/runtime)
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kernels/device.h"
#include "kernels/latent_pack.h"
#include "prefix_index/block_hash.h"
#include "prefix_index/duel.h"
#include "prefix_index/journey.h"
#include "prefix_index/token.h"
#include "store/conversations.h"
#include "store/encryption.h"
#include "store/forget.h"
#include "store/kv_layout.h"
#include "store/namespace_book.h"
#include "store/quarantine.h"
#include "store/ram_plan.h"
#include "store/store_settings.h"
#include "store/tenants.h"

namespace ember {

class LiveEdits;  // store/live_edits.h
class LiveView;   // store/live_view.h

struct BlockCacheOptions {
  std::string store_path;  // empty: no store, device and host tiers only
  EncryptionOptions encryption;
  KvLayout layout;
  NamespaceHash name_space;  // engine/model/identity.h
  TenantPolicy tenants = {};
  // What the store writes down of the namespace, for whoever inspects it; empty: nothing.
  NamespaceEntry name_space_entry = {};
  uint64_t numerics_build = 0;  // only blocks of this build are used (policy `exact`)
  uint64_t ram_bytes = 0;       // see plan_ram
  uint64_t disk_bytes = 0;      // limit on all files of the store
  uint64_t request_tokens = 0;  // longest request
  StoreSettings settings = {};
  const Clock* clock = nullptr;  // null: the system's
};

enum class StoreState : uint8_t {
  kOk,  // reads and writes
  // Works in part, see reason: reading only, without conversations, writes that fail, or files that
  // other users can reach.
  kDegraded,
  kUnusable,  // could not be opened: the requests run without it
  kOff,       // not asked for
};

struct StoreHealth {
  StoreState state = StoreState::kOff;
  std::string reason;         // one line; empty when all is well
  int64_t since_unix_us = 0;  // when it came to be in this state
};

// What became of a chain's prefix. restored + computed = prompt, once the prompt is done.
struct RestoreReport {
  std::array<uint64_t, kTierCount> restored_tokens{};  // by the tier they came from
  uint64_t damaged_blocks = 0;                         // found on the way; recomputed
  int64_t match_us = 0;
  int64_t restore_us = 0;
  uint64_t total() const {
    uint64_t sum = 0;
    for (uint64_t tokens : restored_tokens) sum += tokens;
    return sum;
  }
};

// Counters since opening, and sizes now.
struct BlockCacheStats {
  StoreHealth health;
  std::array<uint64_t, kTierCount> blocks{};           // resident
  std::array<uint64_t, kTierCount> capacity_blocks{};  // 0: bounded in bytes
  std::array<uint64_t, kTierCount> restored_tokens{};
  uint64_t indexed_blocks = 0;
  uint64_t tail_records = 0;
  uint64_t holes = 0;
  uint64_t stranded = 0;        // 0 always
  uint64_t foreign_blocks = 0;  // of other namespaces or numerics builds, in the same store
  uint64_t committed_blocks = 0;
  uint64_t dedup_blocks = 0;      // committed, but already known
  uint64_t dedup_checked = 0;     // of those, compared with what was stored
  uint64_t dedup_mismatch = 0;    // of those, different: 0 always, since runs are bit-equal
  uint64_t offloaded_blocks = 0;  // accepted by the disk
  uint64_t durable_blocks = 0;    // flushed
  uint64_t flush_failures = 0;    // flushes that failed; what they were to save waits for the next
  uint64_t offload_failures = 0;  // given up after retries
  uint64_t wedged_tasks = 0;      // of the write lane: did not come back in time
  uint64_t late_blocks = 0;       // restores that their deadline ended
  uint64_t damaged_blocks = 0;    // found: their stored bytes were proven wrong
  uint64_t read_retries = 0;      // reads that failed once
  uint64_t read_errors = 0;       // and again, which proves nothing against the bytes: misses
  uint64_t quarantined_records = 0;  // kept aside now
  uint64_t quarantine_bytes = 0;     // of their files
  uint64_t quarantine_dropped = 0;   // since opening: not kept, or no longer, for want of room
  uint64_t scrubbed_blocks = 0;      // since opening: proven by the scrubber
  uint64_t scrubbed_bytes = 0;       // since opening: read by it
  uint64_t scrub_damaged = 0;        // since opening: blocks that it found wrong
  uint64_t scrub_passes = 0;         // since the store was made: over all of its blocks
  int64_t last_scrub_unix_us = 0;    // when the last pass ended; 0: none has
  uint64_t evicted_blocks = 0;
  bool loading = false;             // the store's records are still being read
  uint64_t looked_up_blocks = 0;    // asked for by prompts before the reading came to them
  uint64_t unreadable_records = 0;  // at opening
  uint64_t access_entries = 0;      // written to the access log
  uint64_t access_dropped = 0;      // the log could not keep up, or not be written
  uint64_t warmed_blocks = 0;       // brought into RAM before anyone asked (warm-up)
  uint64_t warmed_bytes = 0;        // read for that
  uint64_t warm_up_left = 0;        // blocks that are still to come
  uint64_t prefetched_blocks = 0;   // brought into RAM for requests that waited
  uint64_t prefetch_slots = 0;      // host slots that are kept for such requests now
  uint64_t disk_bytes = 0;          // all files
  uint64_t disk_limit_bytes = 0;
  uint64_t stored_bytes = 0;  // payload on disk of live groups
  uint64_t raw_bytes = 0;     // what they decode to
  uint64_t written_bytes = 0;
  // Eviction, by tier: blocks of its shadows, how often their lead has changed, which one leads.
  std::array<uint64_t, kTierCount> shadow_capacity{};
  std::array<uint64_t, kTierCount> shadow_switches{};
  std::array<EvictionPolicy, kTierCount> shadow_leader{};
  uint64_t shadow_bytes = 0;   // RAM of all shadows
  uint64_t pinned_blocks = 0;  // now
  uint64_t expired_pins = 0;   // blocks whose pin has run out
  uint64_t refused_pins = 0;   // calls that would have passed the share of pins

  // The drive and what the limits cost; counters since opening.
  uint64_t waiting_blocks = 0;  // on their way to the disk now
  uint64_t lost_blocks = 0;     // durable once, given up because the drive was full or was damaged
  uint64_t lost_epochs = 0;
  uint64_t aged_blocks = 0;        // gone for their age
  uint64_t epoch_evictions = 0;    // gone with an epoch, before colder ones elsewhere
  uint64_t index_evictions = 0;    // gone because the index had met its share of RAM
  uint64_t budget_left_bytes = 0;  // that may be written now; 0 without a budget
  uint64_t free_bytes = 0;         // of the file system
  uint64_t free_floor_bytes = 0;
  uint64_t ballast_bytes = 0;  // 0: released, the drive is or was full
  uint64_t ballast_releases = 0;
  uint64_t accepted_bytes = 0;   // payload; written_bytes over it is the write amplification
  uint64_t rewritten_bytes = 0;  // put again by reclaiming
  uint64_t retired_epochs = 0;
  uint64_t index_bytes = 0;         // RAM; its share is ram_plan().index_bytes
  uint64_t staging_peak_bytes = 0;  // the most that coded blocks took
};

// What a client knows of the next use of a prefix. Advice: it never changes a result, only which
// blocks go first when a tier is full.
struct UseHint {
  bool one_shot = false;       // a chain's: what it computes will not be asked for again
  bool session_ended = false;  // what no other session shares goes before anything else
  int64_t next_use_us = 0;     // from now; until then the blocks are spared. 0: not known
};

// A request's place in the cache: its tokens so far and the device slots of their latents. While a
// chain lives its slots are leased: nothing can evict them. Made by BlockCache::open_chain.
class Chain {
 public:
  virtual ~Chain() = default;
  // Slots of the blocks, in order, for LatentCacheView::block_tables; fixed once ready().
  virtual std::span<const int32_t> block_table() const = 0;
  // Tokens whose latents are in place (restored, or computed and committed).
  virtual size_t length() const = 0;
  // False while restoring; after that length() is where computing begins.
  virtual bool ready() const = 0;
  virtual const RestoreReport& restore_report() const = 0;

  // --- a step before it is ready (docs/scheduling.md)
  // Where computing begins if all that was asked for comes; length() tells what came.
  virtual size_t expected_length() const = 0;
  // Layer groups, from the first on, that are proven and in place in every block; 0 once a block is
  // lost.
  virtual uint32_t readable_groups() const = 0;
  // A step that reads the chain begins: for each layer group a ticket (none: it is readable) that
  // completes with success when the group is readable, and with failure when it will not be. Until
  // end_step() no slot of the chain changes hands, and it does not become ready.
  virtual std::span<const Ticket> begin_step() = 0;
  // Lets the tickets fail that have not completed: others want the device.
  virtual void give_way() = 0;
  // The step's own ticket has completed. If it succeeded, ready() and length() are as expected.
  virtual void end_step() = 0;
};

// What a waiting request has asked for ahead; while it lives, what came is kept in RAM.
class Prefetch {
 public:
  virtual ~Prefetch() = default;
  virtual size_t blocks_in_ram() const = 0;
};

class BlockCache {
 public:
  // Opens the cache on `device` (which outlives it). A store that cannot be opened for its damage
  // is no error: the cache runs without it and health() says why.
  // Errors: kInvalidArgument (RAM too small), kUnsupported (an intact store of another version),
  // kBusy (held by another process; the pid is named), kIo or kCapacity (a new store that cannot be
  // made).
  static Result<std::unique_ptr<BlockCache>> open(const BlockCacheOptions& options, Device& device);
  // Waits for copies in flight; what is not durable yet is written and flushed first.
  virtual ~BlockCache() = default;

  // --- a request
  // Tokens of `prompt` that are known to the request's scope, at most prompt.size() - 1, by the
  // best tier of their block.
  struct TierRun {
    Tier tier = Tier::kDevice;
    size_t tokens = 0;
  };
  struct Match {
    size_t tokens = 0;
    std::array<uint64_t, kTierCount> tokens_by_tier{};
    std::vector<TierRun> runs;  // the same, from the prompt's front on
    // After opening a large store: it is being asked for more of this prompt. Match again after a
    // completion, or do with what there is.
    bool looking_up = false;
  };
  virtual Match match(TokenSpan prompt, const RequestScope& scope = {}) = 0;
  // Leases slots for `max_tokens` tokens and begins to restore the first `restore_tokens` of
  // `prompt` (at most what match said; 0: compute all), for at most `patience_us` (0: as long as a
  // slow disk is waited for). Errors: kCapacity when leases of others leave too few slots;
  // kInvalidArgument when it could never fit, or the scope is refused (check_request_scope).
  virtual Result<std::unique_ptr<Chain>> open_chain(TokenSpan prompt, size_t restore_tokens,
                                                    size_t max_tokens,
                                                    const RequestScope& scope = {},
                                                    int64_t patience_us = 0) = 0;
  // For a request that waits: brings blocks of the first `tokens` of `prompt` from the disk to host
  // RAM, as far as half of it goes, when no restore is under way. Takes no device slot. To be
  // dropped when its chain is open, and before the cache.
  virtual std::unique_ptr<Prefetch> prefetch(TokenSpan prompt, size_t tokens,
                                             const RequestScope& scope = {}) = 0;
  // The latents of `tokens`, which follow the first chain.length() tokens, are in their slots now.
  // Full blocks enter the index, in the scope with which the chain was opened, and are offloaded in
  // the background.
  virtual void commit(Chain& chain, TokenSpan tokens) = 0;
  // The turn's end: writes the unfinished block as a tail record, in the background, like all
  // offload. The chain can go on being used.
  virtual void commit_tail(Chain& chain) = 0;

  // --- hints (docs/eviction.md)
  // For a chain: to be given before its first commit. What a one-shot chain computes is not written
  // down, stays on the device while there is room, and teaches the shadows nothing.
  virtual void hint(Chain& chain, const UseHint& hint) = 0;
  // For the known blocks of a prefix; one_shot has no meaning here.
  virtual void hint(TokenSpan prefix, const UseHint& hint, const RequestScope& scope = {}) = 0;
  // Keeps the known blocks of `prefix` for `ttl_us` from now (0: no longer), by the clock; later
  // pins of a block can only prolong that. Returns the tokens pinned: whole blocks of them.
  // A pin lives in this process alone. Errors: kCapacity when all pins would hold more than a
  // fourth of the lowest tier; kInvalidArgument for a time below 0 or above kLongestPinUs.
  virtual Result<size_t> pin(TokenSpan prefix, int64_t ttl_us, const RequestScope& scope = {}) = 0;
  static constexpr int64_t kLongestPinUs = int64_t{30} * 24 * 3600 * 1'000'000;

  // --- durability
  // Completes (through the device's queue, see handle) when all that was committed before is
  // durable, or has failed for good. A zero ticket: nothing to wait for.
  // For a tenant it fails only where blocks of that tenant's were not stored.
  virtual Ticket sync(std::string_view tenant = {}) = 0;
  // Copies the open store to `target`, a path that is absent and outside of it (sync first: what
  // the disk has not accepted yet is not in it). Tables are hard links where the file system allows
  // it. Completes through the device's queue like sync; the writing of blocks waits meanwhile,
  // requests do not. `target` is there only when it is whole, and opens as a store of its own with
  // the same secret; a crash leaves at most <target>.unfinished.
  // Errors (of the ticket): kInvalidArgument, kUnsupported (no usable store), kIo, kCapacity.
  virtual Ticket snapshot(const std::string& target) = 0;
  // Looks at ages and goes on scrubbing; to be called at least every second, also when idle.
  virtual void tick() = 0;

  // --- forgetting
  // Makes all that a scope left unreadable (store/forget.h): it leaves the index now and the store
  // by a task of the write lane; `done` runs on the engine thread, in handle(). Requests of the
  // scope may go on meanwhile: what they commit is written behind that task, under a new key.
  // Errors: kBusy while a chain is open, or offload, restore or loading is under way (see busy());
  // kUnsupported without a store that can be written. Those of forget_scope come to `done`.
  using ForgetDone = std::function<void(const Result<ForgetReport>&)>;
  virtual Status forget(const ForgetRequest& request, ForgetDone done) = 0;

  // --- the engine's loop
  // Takes a completion that belongs to the cache; false: it is someone else's.
  virtual bool handle(const Completion& completion) = 0;
  // True while offload, restore or a comparison is under way: slots may come free.
  virtual bool busy() const = 0;
  // True while the records of a large store are read in the background, after opening. Requests
  // run; blocks that a prompt needs are looked up one by one; nothing is evicted from the disk.
  virtual bool loading() const = 0;

  virtual const KvLayout& layout() const = 0;
  // The pool that block tables index; block_tables and table_stride are left for the caller to set.
  virtual LatentCacheView layer_view(uint32_t layer) const = 0;
  virtual Conversations* conversations() = 0;  // null without a usable store
  virtual const StoreHealth& health() const = 0;
  virtual const RamPlan& ram_plan() const = 0;
  // The whole cache's: the operator's alone. Cost: that of asking the file system for its free
  // space; none of it grows with the number of blocks.
  virtual BlockCacheStats stats() const = 0;
  // What one tenant may know. Cost: linear in its own blocks.
  virtual TenantStats stats_of(std::string_view tenant) const = 0;

  // For whoever inspects the store while it is open: places of blocks, those that no disk has yet,
  // and the parts, which any thread may read from.
  virtual const LiveView& live_view() const = 0;
  // For whoever changes it while it is open.
  virtual LiveEdits& live_edits() = 0;

  // --- for tests and tools
  // Forgets all copies in a tier (device, host) that no lease holds and a lower tier has.
  virtual void drop_tier(Tier tier) = 0;
  // One line for each known block, parents before children: the operator's alone.
  struct Row {
    BlockHash hash;
    BlockHash parent;
    std::string scope;
    std::string publisher;  // of a shared block: on whose quota it counts
    uint32_t position = 0;
    uint32_t token_count = 0;
    uint64_t raw_bytes = 0;
    uint64_t stored_bytes = 0;
    uint32_t hits = 0;
    int64_t last_use_unix_us = 0;
    std::array<bool, kTierCount> in{};
    bool damaged = false;
    std::vector<TokenId> tokens;
  };
  virtual std::vector<Row> rows() const = 0;
  // Records that were proven wrong and are kept aside, oldest first. Cost: reads their files.
  virtual std::vector<QuarantineRow> quarantined() const = 0;
  // What one tenant may know: its own, what it published, and the shared blocks under which those
  // hang, without their uses.
  virtual std::vector<Row> rows_of(std::string_view tenant) const = 0;
};

}  // namespace ember
