// Flushing, tails, and those who wait for durability.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/cache/offload_executor.h"

namespace ember {

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
  upkeep_due_ = status.ok();
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

// Only that some are lost is told but once; all else the next flush finds out for itself.
void OffloadExecutor::flushed_by_others(const Status& status) {
  upkeep_due_ = upkeep_due_ || status.ok();
  const bool lost = !status.ok() && status.error().code == ErrorCode::kCancelled;
  if (lost) flushed(unflushed_.size(), status);
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
  std::erase_if(syncs_, [&](SyncWaiter& waiter) {
    bool queued = queue_.first_order() <= waiter.order;
    const bool unflushed = waits_for_flush(waiter) && waiter.status.ok();
    if (queued && !unflushed && budget_used_up_ && !lane_busy_) {
      if (waiter.status.ok()) {
        waiter.status = {ErrorCode::kBusy,
                         "the day's write budget is used up: " + std::to_string(queue_.size()) +
                             " blocks wait for the next, and are not durable"};
      }
      queued = false;
    }
    if (queued || unflushed) return false;
    answer(waiter);
    return true;
  });
}

}  // namespace ember
