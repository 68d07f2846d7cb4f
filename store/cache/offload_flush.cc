// Making room, flushing, and those who wait for durability.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "store/cache/offload_executor.h"

namespace ember {
namespace {

// Erased together, so that retiring an epoch pays: an epoch is 1/32 of the tier.
constexpr uint64_t kEvictionShare = 32;
// Of a record's metadata, beside its payload.
constexpr uint64_t kRecordOverheadBytes = 4096;

}  // namespace

void OffloadExecutor::add_foreign(std::span<const ForeignRecord> records) {
  for (const ForeignRecord& record : records) {
    foreign_.push_back(record);
    foreign_hashes_.insert(record.hash);
  }
  foreign_sorted_ = foreign_sorted_ && records.empty();
}

std::optional<ForeignRecord> OffloadExecutor::take_foreign() {
  if (!std::exchange(foreign_sorted_, true)) {
    std::sort(foreign_.begin(), foreign_.end(), [](const auto& a, const auto& b) {
      return a.position < b.position;
    });
  }
  while (!foreign_.empty()) {
    const ForeignRecord record = foreign_.back();
    foreign_.pop_back();
    if (foreign_hashes_.erase(record.hash) > 0) return record;
  }
  return std::nullopt;
}

// Erases victims and asks the tier for room. False: there is nothing left that may go.
bool OffloadExecutor::make_room(OffloadJob& job) {
  if (context_.loading && !job.is_tail()) {
    job.not_before_us = context_.clock.now_us() + context_.tuning.retry_us;
    return !closing_;
  }
  if (++job.evictions > context_.tuning.eviction_rounds) return false;
  if (job.is_tail()) return drop_oldest_tail();
  context_.ledger.disk_is_full();

  const uint64_t needed = job.coded.record.stored_bytes() + kRecordOverheadBytes;
  const uint64_t wanted =
      std::max(needed * 2, context_.disk_limit_bytes / kEvictionShare) * job.evictions;
  // What is doomed already goes first: the parent of one of them may be a victim now.
  doom_stale_records();
  std::vector<ForeignRecord> blocks = std::exchange(doomed_blocks_, {});
  std::vector<BlockHash> tails;
  uint64_t freed = 0;
  while (freed < wanted) {
    if (const std::optional<ForeignRecord> foreign = take_foreign()) {
      blocks.push_back(*foreign);
      freed += foreign->stored_bytes;
      ++context_.counters.evicted_blocks;
      continue;
    }
    const std::optional<BlockLedger::DiskVictim> victim = context_.ledger.take_disk_victim();
    if (!victim) break;
    if (victim->tail) {
      context_.tails.erase(victim->hash);
      tails.push_back(victim->hash);
    } else {
      blocks.push_back({victim->hash, 0, victim->stored_bytes});
      freed += victim->stored_bytes;
    }
  }
  doom_stale_records();  // of parents that were kept for a victim
  blocks.insert(blocks.end(), doomed_blocks_.begin(), doomed_blocks_.end());
  doomed_blocks_.clear();
  if (blocks.empty() && tails.empty() && job.evictions > 1) return false;
  DiskTier* disk = context_.disk;
  Conversations* conversations = context_.conversations;
  const auto erased = std::make_shared<size_t>(0);  // of the blocks
  on_write_lane(
      [disk, conversations, blocks, tails, needed, erased]() -> Status {
        for (; *erased < blocks.size(); ++*erased) EMBER_TRY(disk->erase(blocks[*erased].hash));
        if (conversations != nullptr) {
          for (const BlockHash& hash : tails) EMBER_TRY(conversations->erase_tail(hash));
        }
        // Whether it made enough shows when the block is put again.
        static_cast<void>(disk->make_room(needed));
        return {};
      },
      [this, blocks, tails, erased](const Status& status) {
        if (status.ok()) return;
        remember_unerased(std::span(blocks).subspan(*erased));
        doomed_tails_.insert(doomed_tails_.end(), tails.begin(), tails.end());
      });
  return true;
}

// The index has forgotten them, so nothing else would ever erase them. The first is the deepest.
void OffloadExecutor::remember_unerased(std::span<const ForeignRecord> blocks) {
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    foreign_.push_back(*block);
    foreign_hashes_.insert(block->hash);
  }
}

bool OffloadExecutor::drop_oldest_tail() {
  const std::optional<BlockHash> oldest = context_.tails.oldest();
  if (!oldest) return false;
  forget_tail(*oldest);
  return true;
}

void OffloadExecutor::forget_tail(const BlockHash& hash) {
  context_.tails.erase(hash);
  doomed_tails_.push_back(hash);
  const BlockId block = context_.ledger.index().find(hash);
  if (block == kNoBlock || !context_.ledger.is_tail(block)) return;
  if (context_.ledger.entry(block).in(Tier::kDisk)) {
    context_.ledger.drop_copy(block, Tier::kDisk);
  }
}

void OffloadExecutor::supersede(const std::string& scope, const BlockHash& parent,
                                TokenSpan tokens) {
  for (const BlockHash& shorter : context_.tails.superseded_by(scope, parent, tokens)) {
    forget_tail(shorter);
  }
}

void OffloadExecutor::erase_tails(const std::vector<BlockHash>& tails) {
  if (tails.empty() || context_.conversations == nullptr) return;
  if (lane_busy_ || !can_write()) {
    doomed_tails_.insert(doomed_tails_.end(), tails.begin(), tails.end());
    return;
  }
  Conversations* conversations = context_.conversations;
  on_write_lane(
      [conversations, tails]() -> Status {
        for (const BlockHash& hash : tails) EMBER_TRY(conversations->erase_tail(hash));
        return {};
      },
      [](const Status&) {});  // what stays is found again, and erased, at the next opening
}

void OffloadExecutor::flush() {
  const std::vector<std::pair<BlockHash, TouchRecord>> touches = context_.ledger.take_touches();
  DiskTier* disk = context_.disk;
  const size_t count = unflushed_.size();
  on_write_lane(
      [disk, touches]() -> Status {
        // A lost touch record costs an order of eviction, so its fate is not that of the blocks.
        if (!touches.empty()) static_cast<void>(disk->touch(touches));
        return disk->flush();
      },
      [this, count](const Status& status) { flushed(count, status); });
}

void OffloadExecutor::flushed(size_t count, const Status& status) {
  if (count == 0) return;
  // What is lost is not found again by flushing once more.
  const bool lost = !status.ok() && status.error().code == ErrorCode::kCancelled;
  if (!status.ok()) {
    ++context_.counters.flush_failures;
    flush_not_before_us_ =
        context_.clock.now_us() + (context_.tuning.retry_us << std::min(flush_attempts_, 6u));
    const bool patient = ++flush_attempts_ < context_.tuning.write_attempts;
    if (patient && !lost) return;
    tell_flush_failure(status);
    // The disk has them, only not for sure: they are flushed when it lets us.
    if (!lost && !closing_) return;
    context_.counters.offload_failures += count;
  }
  flush_attempts_ = 0;
  const std::vector<Unflushed> settled(
      unflushed_.begin(), unflushed_.begin() + static_cast<std::ptrdiff_t>(count));
  unflushed_.erase(unflushed_.begin(), unflushed_.begin() + static_cast<std::ptrdiff_t>(count));
  oldest_unflushed_us_ = context_.clock.now_us();
  if (unflushed_.empty()) turn_ended_us_ = -1;
  if (status.ok()) {
    context_.health.tell(HealthTopic::kWriting, "");
    context_.counters.durable_blocks += count;
    for (const Unflushed& block : settled) supersede(block.scope, block.parent, block.tokens);
    return;
  }
  for (const Unflushed& block : settled) {
    if (lost) write_again(block.hash);
  }
}

// Whoever waits for one of the blocks is told now, and not kept waiting.
void OffloadExecutor::tell_flush_failure(const Status& status) {
  context_.health.tell(HealthTopic::kWriting,
                       "blocks could not be flushed: " + status.error().message);
  for (SyncWaiter& waiter : syncs_) {
    if (waits_for_flush(waiter) && waiter.status.ok()) waiter.status = status;
  }
}

void OffloadExecutor::write_again(const BlockHash& hash) {
  const BlockId block = context_.ledger.index().find(hash);
  if (block == kNoBlock || !context_.ledger.entry(block).in(Tier::kDisk)) return;
  context_.ledger.mark_damaged(block);
  if (context_.ledger.entry(block).in(Tier::kDisk) || closing_) return;
  const bool on_device = context_.ledger.entry(block).in(Tier::kDevice);
  queue_.add(block, on_device ? context_.ledger.lease_copy(block, Tier::kDevice) : SlotLease());
}

Ticket OffloadExecutor::sync(ScopeId tenant) {
  turn_ended();
  const bool nothing = queue_.empty() && unflushed_.empty();
  if (nothing || !can_write()) return {};
  const Ticket ticket = context_.device.external_ticket();
  syncs_.push_back({ticket, queue_.last_order(), tenant, {}});
  if (lane_wedged_) {
    end_syncs({ErrorCode::kIo, context_.health.now().reason});
    return ticket;
  }
  advance();
  return ticket;
}

// A task cannot be taken back, and what it touches stays leased. But whoever waits is told, and the
// queue in front of the lane is bounded by the slots.
void OffloadExecutor::watch_lane() {
  const int64_t away_us = context_.clock.now_us() - lane_since_us_;
  if (!lane_busy_ || lane_wedged_ || away_us < context_.tuning.lane_patience_us) return;
  lane_wedged_ = true;
  ++context_.counters.wedged_tasks;
  const std::string reason = "the disk has not answered a write for " +
                             std::to_string(away_us / 1'000'000) + " s";
  context_.health.tell(HealthTopic::kLane, reason);
  end_syncs({ErrorCode::kIo, reason});
}

void OffloadExecutor::end_syncs(const Error& error) {
  for (SyncWaiter& waiter : std::exchange(syncs_, {})) {
    if (waiter.status.ok()) waiter.status = error;
    answer(waiter);
  }
}

void OffloadExecutor::answer(const SyncWaiter& waiter) {
  Status status = waiter.status;
  // What it says may name others' blocks and the store's files.
  if (!status.ok() && waiter.tenant != kNoScope) {
    status = Error{status.error().code, "not all blocks of the tenant could be stored"};
  }
  context_.device.post(waiter.ticket, std::move(status));
}

// Whether a block that the disk has accepted, and that this one waits for, is not flushed yet.
bool OffloadExecutor::waits_for_flush(const SyncWaiter& waiter) const {
  return std::any_of(unflushed_.begin(), unflushed_.end(), [&](const Unflushed& block) {
    return block.order <= waiter.order && concerns(waiter, block.hash);
  });
}

bool OffloadExecutor::sync_waits_for_flush() const {
  return std::any_of(syncs_.begin(), syncs_.end(), [&](const SyncWaiter& waiter) {
    return queue_.first_order() > waiter.order;
  });
}

void OffloadExecutor::settle_syncs() {
  std::erase_if(syncs_, [&](const SyncWaiter& waiter) {
    const bool queued = queue_.first_order() <= waiter.order;
    if (queued || (waits_for_flush(waiter) && waiter.status.ok())) return false;
    answer(waiter);
    return true;
  });
}

}  // namespace ember
