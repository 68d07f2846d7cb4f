// Batches of fills: reads, group copies, publication.
#include "store/cache/restore_executor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "store/cache/slot_copies.h"

namespace ember {
namespace {

constexpr size_t kBatchFills = 64;
constexpr size_t kReadsUnderWay = 16;  // of a batch, or one a block: more than a drive needs
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

bool alive(const Fill& fill) { return fill.state == Fill::State::kRunning && !fill.cancelled; }

bool all_proven(const Fill& fill) {
  return std::all_of(fill.group_ready.begin(), fill.group_ready.end(),
                     [](char ready) { return ready != 0; });
}

}  // namespace

RestoreExecutor::~RestoreExecutor() {
  EMBER_CHECK(fills_.empty(), "the cache closes while blocks are being restored");
}

Fill* RestoreExecutor::find(BlockId block) const {
  const auto found = whole_.find(block);
  return found == whole_.end() ? nullptr : found->second;
}

Fill* RestoreExecutor::add(std::unique_ptr<Fill> fill, FillWaiter* waiter) {
  Fill* added = fill.get();
  if (waiter != nullptr) added->waiters.push_back(waiter);
  added->group_ready.assign(context_.layout.group_count(),
                            added->from == Tier::kDisk ? char{0} : char{1});
  context_.ledger.hold(added->block);
  if (added->from == Tier::kDisk) {
    ++context_.ledger.notes(added->block).disk_readers;
    added->identity = context_.identity_of(added->block);
    if (added->identity.tail) added->record = *context_.tails.find(added->identity.hash);
  }
  if (added->whole) whole_.emplace(added->block, added);
  next_deadline_us_ = std::min(next_deadline_us_, added->deadline_us);
  queue_.push_back(added);
  fills_.push_back(std::move(fill));
  return added;
}

void RestoreExecutor::leave(Fill* fill, FillWaiter* waiter) {
  std::erase(fill->waiters, waiter);
  if (fill->waiters.empty() && fill->state == Fill::State::kQueued) cancel(fill);
}

void RestoreExecutor::cancel(Fill* fill) {
  if (fill->state == Fill::State::kDone || fill->state == Fill::State::kFailed) return;
  fill->cancelled = true;
  fail(*fill);
}

void RestoreExecutor::fail(Fill& fill) {
  // A copy under way may still write the target: its owner must not have it back yet.
  if (fill.state == Fill::State::kRunning && fill.batch->copies > 0) {
    fill.cancelled = true;
    return;
  }
  if (fill.state == Fill::State::kQueued) std::erase(queue_, &fill);
  settle(fill, Fill::State::kFailed);
}

void RestoreExecutor::settle(Fill& fill, Fill::State state) {
  if (fill.state == Fill::State::kDone || fill.state == Fill::State::kFailed) return;
  fill.state = state;
  if (fill.whole) whole_.erase(fill.block);
  settled_.push_back(&fill);
  unswept_ = true;
}

void RestoreExecutor::pump() {
  expire();
  if (!settled_.empty()) deliver();
  for (FillWaiter* waiter : std::exchange(retries_, {})) waiter->retry();
  if (unswept_) sweep();
  size_t waiting = queue_.size() + 1;
  while (!queue_.empty() && queue_.size() < waiting) {
    waiting = queue_.size();
    start_batch();
  }
}

// What the disk refused may hold every slot that no waiting request keeps, below blocks that are on
// the device alone: those go then.
std::optional<SlotLease> RestoreExecutor::host_slot() {
  std::optional<SlotLease> slot = context_.ledger.take_host_slot();
  while (!slot && !context_.host_slot_comes_back() && context_.ledger.shed_device_leaf()) {
    slot = context_.ledger.take_host_slot();
  }
  return slot;
}

void RestoreExecutor::start_batch() {
  auto batch = std::make_unique<FillBatch>();
  bool host_slots_left = true;
  std::deque<Fill*> waiting;
  for (Fill* fill : queue_) {
    if (fill->from == Tier::kDisk && host_slots_left && batch->fills.size() < kBatchFills) {
      std::optional<SlotLease> slot = host_slot();
      if (slot) fill->source = std::move(*slot);
      host_slots_left = slot.has_value();
    }
    // One whose source is leased already never waits: it may hold the slot that another needs.
    if (!fill->source || batch->fills.size() == kBatchFills) {
      waiting.push_back(fill);
      continue;
    }
    fill->state = Fill::State::kRunning;
    fill->batch = batch.get();
    batch->fills.push_back(fill);
  }
  queue_ = std::move(waiting);
  if (batch->fills.empty()) return;
  batch->copied.assign(context_.layout.group_count(), 0);
  poison(*batch);
  for (Fill* fill : batch->fills) {
    if (fill->from == Tier::kDisk) read(*fill, 0);
  }
  batches_.push_back(std::move(batch));
}

void RestoreExecutor::poison(FillBatch& batch) {
  std::vector<Copy> copies;
  for (const Fill* fill : batch.fills) {
    append_poison_copies(context_.layout, fill->tokens, context_.host_tier.poison_row(),
                         context_.device_pool.at(fill->target.slot()), copies);
  }
  ++batch.copies;
  FillBatch* poisoned = &batch;
  context_.tickets.on(context_.device.copy(copies), [this, poisoned](const Status& status) {
    poisoned->poisoned = true;
    copies_ended(*poisoned, status);
  });
}

void RestoreExecutor::read(Fill& fill, uint32_t group) {
  const BlockReader reader = context_.reader();
  std::byte* slot = context_.host_tier.at(fill.source.slot());
  Fill* filled = &fill;  // stays until its reads have ended
  ++fill.reads;
  const Ticket ticket =
      context_.device.run_host(HostLane::kRead, [reader, filled, group, slot]() -> Status {
        if (group > 0) return reader.read_group(filled->record, group, slot);
        return reader.read_first(filled->identity, filled->record, slot);
      });
  context_.tickets.on(ticket, [this, filled, group](const Status& status) {
    read_ended(*filled, group, status);
  });
}

void RestoreExecutor::read_ended(Fill& fill, uint32_t group, const Status& status) {
  --fill.reads;
  if (status.ok()) {
    mark_group(fill, group);
  } else if (!context_.ledger.entry(fill.block).in(Tier::kDisk)) {
    cancel(&fill);  // forgotten while it was read, as a tail is that a longer block follows
  } else if (status.error().code != ErrorCode::kCorruption) {
    // Nothing speaks against the stored bytes: a miss. If it is computed again it is stored again.
    ++context_.counters.read_errors;
    context_.ledger.notes(fill.block).read_failed = true;
    cancel(&fill);
  } else if (!fill.damaged) {
    fill.damaged = true;
    context_.damaged(fill.block);
    fail(fill);
  }
  advance(*fill.batch);
}

void RestoreExecutor::mark_group(Fill& fill, uint32_t group) {
  const BlockReader reader = context_.reader();
  fill.group_ready[group] = 1;
  if (group == 0 && !reader.same_grouping(fill.record)) {
    std::fill(fill.group_ready.begin(), fill.group_ready.end(), char{1});
  }
  if (all_proven(fill)) {
    context_.ledger.publish(fill.block, Tier::kHost, fill.source);
  } else if (alive(fill)) {
    read_more(fill);
  }
}

void RestoreExecutor::read_more(Fill& fill) {
  const size_t blocks = fill.batch->fills.size();
  const size_t at_once = (kReadsUnderWay + blocks - 1) / blocks;
  while (fill.reads < at_once && fill.next_read < context_.layout.group_count()) {
    read(fill, fill.next_read++);
  }
}

void RestoreExecutor::advance(FillBatch& batch) {
  while (copy_next_group(batch)) {
  }
  if (batch.copies > 0) return;
  for (Fill* fill : batch.fills) {
    if (fill->state != Fill::State::kRunning) continue;
    if (fill->cancelled || fill->damaged) {
      settle(*fill, Fill::State::kFailed);
    } else if (batch.next_group == context_.layout.group_count()) {
      if (fill->whole) context_.ledger.publish(fill->block, Tier::kDevice, fill->target);
      settle(*fill, Fill::State::kDone);
    }
  }
}

bool RestoreExecutor::copy_next_group(FillBatch& batch) {
  if (!batch.poisoned || batch.next_group == context_.layout.group_count()) return false;
  std::vector<Copy> copies;
  for (const Fill* fill : batch.fills) {
    if (!alive(*fill) || fill->damaged) continue;
    if (fill->group_ready[batch.next_group] == 0) return false;
    const std::byte* from = fill->from == Tier::kDevice
                                ? context_.device_pool.at(fill->source.slot())
                                : context_.host_tier.at(fill->source.slot());
    append_group_copies(context_.layout, batch.next_group, fill->tokens, from,
                        context_.device_pool.at(fill->target.slot()), copies);
  }
  const uint32_t group = batch.next_group++;
  if (copies.empty()) {
    group_copied(batch, group);
    return true;
  }
  ++batch.copies;
  FillBatch* copied = &batch;
  context_.tickets.on(context_.device.copy(copies), [this, copied, group](const Status& status) {
    if (status.ok()) group_copied(*copied, group);
    copies_ended(*copied, status);
  });
  return true;
}

void RestoreExecutor::group_copied(FillBatch& batch, uint32_t group) {
  batch.copied[group] = 1;
  const uint32_t first = batch.arrived;
  while (batch.arrived < batch.copied.size() && batch.copied[batch.arrived] != 0) ++batch.arrived;
  if (batch.arrived == first) return;
  for (const Fill* fill : batch.fills) {
    if (!alive(*fill) || fill->damaged) continue;
    for (FillWaiter* waiter : fill->waiters) waiter->groups_arrived(*fill, first, batch.arrived);
  }
}

void RestoreExecutor::copies_ended(FillBatch& batch, const Status& status) {
  --batch.copies;
  if (!status.ok()) {
    for (Fill* fill : batch.fills) fill->cancelled = true;
  }
  advance(batch);
}

void RestoreExecutor::expire() {
  const int64_t now = context_.clock.now_us();
  if (now < next_deadline_us_) return;
  next_deadline_us_ = kNever;
  for (const auto& fill : fills_) {
    if (fill->state != Fill::State::kQueued && all_proven(*fill)) continue;  // copies do end
    if (now >= fill->deadline_us) {
      const bool waited_for = fill->state == Fill::State::kQueued || alive(*fill);
      if (waited_for) ++context_.counters.late_blocks;
      cancel(fill.get());
    } else {
      next_deadline_us_ = std::min(next_deadline_us_, fill->deadline_us);
    }
  }
  for (const auto& batch : batches_) advance(*batch);  // it need not wait for the late ones
}

void RestoreExecutor::deliver() {
  while (!settled_.empty()) {
    const std::vector<Fill*> settled = std::exchange(settled_, {});
    for (Fill* fill : settled) {
      fill->settled = true;
      fill->target.release();  // no copy into it is under way
      for (FillWaiter* waiter : std::exchange(fill->waiters, {})) waiter->fill_settled(*fill);
    }
  }
}

// Frees what is settled and whose tickets have ended.
void RestoreExecutor::sweep() {
  unswept_ = false;
  std::erase_if(batches_, [](const std::unique_ptr<FillBatch>& batch) {
    if (batch->copies > 0) return false;
    return std::all_of(batch->fills.begin(), batch->fills.end(),
                       [](const Fill* fill) { return fill->settled && fill->reads == 0; });
  });
  // Fills of a batch go with it, so that the batch's list stays valid.
  std::erase_if(fills_, [&](const std::unique_ptr<Fill>& fill) {
    const bool batched = std::any_of(
        batches_.begin(), batches_.end(),
        [&](const std::unique_ptr<FillBatch>& batch) { return batch.get() == fill->batch; });
    if (batched || !fill->settled) {
      unswept_ = unswept_ || fill->settled;
      return false;
    }
    if (fill->from == Tier::kDisk) --context_.ledger.notes(fill->block).disk_readers;
    context_.ledger.let_go(fill->block);
    return true;
  });
}

}  // namespace ember
