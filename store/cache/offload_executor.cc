// Copies down and writes, step by step.
#include "store/cache/offload_executor.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "base/check.h"
#include "store/cache/slot_copies.h"

namespace ember {
namespace {

constexpr std::chrono::milliseconds kClosingPause{5};
constexpr size_t kWriteBatch = 8;  // blocks of one write task
constexpr size_t kMostCoded = 64;  // more would only fill memory

// The disk has the block as it is coded here: it was not known yet, right after opening.
bool is_stored(DiskTier& disk, const KvLayout& layout, OffloadJob& job) {
  Result<std::optional<BlockRecord>> found = disk.read_record(job.identity.hash);
  if (!found.ok() || !found->has_value()) return false;
  if (!check_record(**found, job.identity, layout).ok()) return false;
  if ((*found)->groups != job.coded.record.groups) return false;
  job.coded.record = std::move(**found);
  return true;
}

// On the write lane: puts the jobs in order, up to the first that is refused.
void write_jobs(const KvLayout& layout, DiskTier& disk, Conversations* conversations,
                const std::vector<OffloadJob*>& jobs, bool look_first) {
  for (OffloadJob* job : jobs) {
    job->tried = true;
    job->result = {};
    if (look_first && !job->is_tail() && is_stored(disk, layout, *job)) continue;
    job->result = job->is_tail()
                      ? conversations->put_tail(job->coded.record, job->coded.payloads, true)
                      : disk.put(job->coded.record, job->coded.payloads);
    if (!job->result.ok()) return;
    job->coded.payloads = {};  // RocksDB has them now
  }
}

// Coding never makes a payload longer than its raw bytes and a frame.
uint64_t most_coded_bytes(const KvLayout& layout) {
  return layout.block_bytes() + layout.group_count() * uint64_t{64};
}

// Blocks whose payloads may wait in RAM: at least one, or nothing would ever be written.
size_t coded_blocks(const CacheContext& context) {
  if (context.limits.staging_bytes == 0) return kWriteBatch;
  const uint64_t fit = context.limits.staging_bytes / most_coded_bytes(context.layout);
  return static_cast<size_t>(std::clamp<uint64_t>(fit, 1, kMostCoded));
}

}  // namespace

void OffloadExecutor::add(BlockId block, SlotLease device) {
  turn_ended_us_ = -1;
  if (queue_.size() >= context_.device_pool.slots().size()) {
    ++context_.counters.offload_failures;
    context_.ledger.hold(block);
    context_.ledger.let_go(block);  // a tail without any copy is forgotten
    return;
  }
  queue_.add(block, std::move(device));
}

bool OffloadExecutor::give_up_newest() {
  OffloadJob* job = queue_.newest_in(OffloadStage::kQueued);
  if (job == nullptr) return false;
  give_up(job, {ErrorCode::kCapacity, "a request needs the device slot"});
  return true;
}

void OffloadExecutor::give_up_all() {
  for (size_t i = queue_.size(); i > 0; --i) {
    OffloadJob& job = queue_.at(i - 1);
    if (job.stage != OffloadStage::kQueued && job.stage != OffloadStage::kHeld) continue;
    give_up(&job, {ErrorCode::kCancelled, "the cache closes before the disk accepted the block"});
  }
  hopeless_ = true;
  if (lane_busy_) return;  // a flush under way counts on them
  unflushed_.clear();
  settle_syncs();
}

void OffloadExecutor::advance() {
  watch_lane();
  while (run_step()) {
  }
  settle_syncs();
}

// True when the queue changed, so that there may be more to do at once.
bool OffloadExecutor::run_step() {
  remove_finished();
  std::vector<OffloadItem> items = queue_.items();
  if (!can_write()) {  // nothing is stored, so no parent needs to be
    for (OffloadItem& item : items) item.parent_stored = true;
  }
  OffloadView view;
  view.items = items;
  view.now_us = context_.clock.now_us();
  const size_t slots = context_.host_tier.slots().size();
  view.host_slots = std::max<size_t>(1, slots - slots / 4);  // the rest is for restores
  view.write_batch = kWriteBatch;
  view.coded_blocks = coded_blocks(context_);
  view.lane_idle = !lane_busy_ && can_write();
  view.closing = closing_;
  const bool may_flush = closing_ || view.now_us >= flush_not_before_us_;
  view.unflushed = may_flush ? unflushed_.size() : 0;
  view.oldest_unflushed_us = oldest_unflushed_us_;
  view.flush_age_us = context_.flush_age_us;
  view.sync_waits = sync_waits_for_flush();
  view.turn_ended_us = turn_ended_us_;
  if (!use_budget(view)) return true;

  OffloadStep step = plan_offload(view);
  for (auto index = step.drop.rbegin(); index != step.drop.rend(); ++index) {
    OffloadJob& job = queue_.at(*index);
    if (queue_.contains(job.parent)) {
      if (!job.coded.payloads.empty()) coded_bytes_ -= job.coded.record.stored_bytes();
      queue_.put_back(&job);  // found damaged before its parent was: the order is the parent's
    } else {
      give_up(&job, {ErrorCode::kCancelled, "its parent is not stored"});
    }
  }
  if (!step.drop.empty()) return true;
  if (copy_down(step.copy, step.must_copy)) return true;
  if (can_write()) code(step.code);
  if (!doomed_tails_.empty() && view.lane_idle) {
    erase_tails(std::exchange(doomed_tails_, {}));
  } else if (view.lane_idle && erase_evicted()) {
    return false;
  } else if (step.flush ||
             (closing_ && view.lane_idle && queue_.empty() && context_.ledger.has_touches())) {
    flush();
  } else if (reclaim_needed_ > 0 && view.lane_idle) {
    reclaim();
  } else if (keep_quotas(step.write)) {
    return true;
  } else if (!step.write.empty()) {
    write(step.write);
  } else if (view.lane_idle && !closing_) {
    use_quiet_lane();
  }
  return false;
}

// Sets what the budget allows. False: the cache closes and will not see another day, so what waits
// for one was given up.
bool OffloadExecutor::use_budget(OffloadView& view) {
  view.may_write = budget_.allows(view.now_us);
  if (budget_.limited()) {
    const uint64_t blocks = budget_.left_bytes() / most_coded_bytes(context_.layout);
    view.write_batch = static_cast<size_t>(std::clamp<uint64_t>(blocks, 1, kWriteBatch));
  }
  budget_used_up_ = !view.may_write && can_write();
  if (!budget_used_up_) return true;
  if (!syncs_.empty()) view.sync_waits = true;  // what is accepted can be made durable
  if (!closing_ || queue_.empty()) return true;
  bool given_up = false;
  for (size_t i = queue_.size(); i > 0; --i) {
    OffloadJob& job = queue_.at(i - 1);
    if (job.stage != OffloadStage::kQueued && job.stage != OffloadStage::kHeld) continue;
    give_up(&job, {ErrorCode::kCancelled, "the day's write budget is used up"});
    given_up = true;
  }
  return !given_up;
}

void OffloadExecutor::charge_budget() {
  if (!budget_.limited()) return;
  const uint64_t written = context_.disk->stats().written_bytes;
  budget_.charge(written - charged_bytes_);
  charged_bytes_ = written;
}

// In the host tier, and there is no disk for it to go on to.
void OffloadExecutor::remove_finished() {
  for (size_t i = queue_.size(); i > 0; --i) {
    OffloadJob& job = queue_.at(i - 1);
    const bool to_disk = can_write() && (!job.is_tail() || context_.conversations != nullptr);
    if (job.stage == OffloadStage::kHeld && !to_disk) queue_.remove(&job);
  }
}

// True when a block needed no copy after all, or one gave way to those that it waited for.
bool OffloadExecutor::copy_down(const std::vector<size_t>& indices, bool must) {
  std::vector<OffloadJob*> jobs;
  std::vector<Copy> copies;
  bool skipped = false;
  for (size_t index : indices) {
    OffloadJob& job = queue_.at(index);
    if (!job.device) continue;
    if (context_.ledger.entry(job.block).in(Tier::kHost)) {
      job.host = context_.ledger.lease_copy(job.block, Tier::kHost);
      job.device.release();
      job.stage = OffloadStage::kHeld;
      skipped = true;
      continue;
    }
    std::optional<SlotLease> slot = context_.ledger.take_host_slot();
    if (!slot) break;
    job.host = std::move(*slot);
    job.stage = OffloadStage::kCopying;
    const auto tokens = static_cast<uint32_t>(job.identity.tokens.size());
    for (uint32_t g = 0; g < context_.layout.group_count(); ++g) {
      append_group_copies(context_.layout, g, tokens, context_.device_pool.at(job.device.slot()),
                          context_.host_tier.at(job.host.slot()), copies);
    }
    jobs.push_back(&job);
  }
  if (jobs.empty() && must && !skipped) return free_a_host_slot();
  if (jobs.empty()) return skipped;
  ++copies_;
  context_.tickets.on(context_.device.copy(copies), [this, jobs](const Status& status) {
    copied_down(jobs, status);
  });
  return skipped;
}

// All that is in host slots waits for what is to come down, or hangs on what the disk refused once.
bool OffloadExecutor::free_a_host_slot() {
  if (OffloadJob* last = queue_.newest_in(OffloadStage::kHeld)) {
    give_up(last, {ErrorCode::kCapacity, "the block that it waits for needs the host slot"});
    return true;
  }
  if (context_.host_slot_comes_back()) return false;
  return context_.ledger.shed_device_leaf() || give_up_newest();
}

void OffloadExecutor::copied_down(const std::vector<OffloadJob*>& jobs, const Status& status) {
  --copies_;
  for (OffloadJob* job : jobs) {
    job->device.release();
    if (!status.ok()) {
      give_up(job, status.error());
      continue;
    }
    context_.ledger.publish(job->block, Tier::kHost, job->host);
    job->stage = OffloadStage::kHeld;
  }
}

void OffloadExecutor::on_write_lane(HostTask task, TicketRouter::Then then) {
  EMBER_CHECK(!lane_busy_, "two tasks of the offload on the write lane");
  lane_busy_ = true;
  lane_since_us_ = context_.clock.now_us();
  const Ticket ticket = context_.device.run_host(HostLane::kWrite, std::move(task));
  context_.tickets.on(ticket, [this, then = std::move(then)](const Status& status) {
    lane_busy_ = false;
    if (std::exchange(lane_wedged_, false)) context_.health.tell(HealthTopic::kLane, "");
    charge_budget();
    then(status);
  });
}

void OffloadExecutor::code(const std::vector<size_t>& indices) {
  const KvLayout& layout = context_.layout;
  const HostTier& host = context_.host_tier;
  for (size_t index : indices) {
    OffloadJob* job = &queue_.at(index);
    job->stage = OffloadStage::kCoding;
    ++coding_;
    const Ticket ticket = context_.device.run_host(HostLane::kRead, [&layout, &host, job] {
      job->coded = encode_block(layout, job->identity, host.at(job->host.slot()));
      return Status{};
    });
    context_.tickets.on(ticket, [this, job](const Status&) {
      --coding_;
      job->stage = OffloadStage::kHeld;
      coded_bytes_ += job->coded.record.stored_bytes();
      context_.counters.staging_peak_bytes =
          std::max(context_.counters.staging_peak_bytes, coded_bytes_);
    });
  }
}

void OffloadExecutor::write(const std::vector<size_t>& indices) {
  std::vector<OffloadJob*> jobs;
  for (size_t index : indices) {
    jobs.push_back(&queue_.at(index));
    jobs.back()->stage = OffloadStage::kWriting;
    jobs.back()->tried = false;
  }
  const KvLayout& layout = context_.layout;
  DiskTier& disk = *context_.disk;
  Conversations* conversations = context_.conversations;
  // A refusal pauses the queue; where nothing waits any more, the lane itself pauses.
  const bool pause = closing_ && jobs.front()->attempts > 0;
  const bool look_first = context_.loading;
  on_write_lane(
      [&layout, &disk, conversations, jobs, pause, look_first]() -> Status {
        if (pause) std::this_thread::sleep_for(kClosingPause);
        write_jobs(layout, disk, conversations, jobs, look_first);
        return {};
      },
      [this, jobs](const Status&) { written(jobs); });
}

void OffloadExecutor::written(const std::vector<OffloadJob*>& jobs) {
  for (OffloadJob* job : jobs) {
    job->stage = OffloadStage::kHeld;
    if (!job->tried) continue;
    if (job->result.ok()) {
      coded_bytes_ -= job->coded.record.stored_bytes();
      accept(*job);
    } else {
      refuse(*job);
    }
  }
}

void OffloadExecutor::accept(OffloadJob& job) {
  const BlockRecord& record = job.coded.record;
  if (flush_attempts_ == 0) context_.health.tell(HealthTopic::kWriting, "");
  if (job.is_tail()) {
    tail_stored(job.block, record);
  } else {
    ++context_.counters.offloaded_blocks;
    stored(job.block, record, job.order);
  }
  queue_.remove(&job);
}

void OffloadExecutor::stored(BlockId block, const BlockRecord& record, uint64_t order) {
  context_.ledger.set_stored(block, static_cast<int32_t>(record.epoch & 0x7fffffffu),
                             record.stored_bytes());
  foreign_hashes_.erase(record.hash);
  if (unflushed_.empty()) oldest_unflushed_us_ = context_.clock.now_us();
  unflushed_.push_back({order, record.hash, record.scope, record.parent, record.tokens});
}

void OffloadExecutor::block_stored(BlockId block, const BlockRecord& record) {
  stored(block, record, queue_.last_order());
}

void OffloadExecutor::tail_stored(BlockId block, const BlockRecord& record) {
  context_.ledger.set_stored(block, kTailEpoch, record.stored_bytes());
  context_.tails.add(record);
  supersede(record.scope, record.parent, record.tokens);
  while (context_.tails.bytes() > context_.tails_limit_bytes && drop_oldest_tail()) {
  }
}

void OffloadExecutor::refuse(OffloadJob& job) {
  const Error& error = job.result.error();
  if (error.code == ErrorCode::kCapacity) {
    if (!make_room(job)) give_up(&job, error);
    return;
  }
  const int64_t pause_us = context_.tuning.retry_us << std::min(job.attempts, 6u);
  job.not_before_us = context_.clock.now_us() + pause_us;
  ++job.attempts;
  if (job.refused_since_us < 0) job.refused_since_us = context_.clock.now_us();
  // "Busy" asks for patience, not for giving up.
  const bool patient =
      error.code == ErrorCode::kBusy && !hopeless_ &&
      context_.clock.now_us() - job.refused_since_us < context_.tuning.busy_patience_us;
  if (!patient && job.attempts >= context_.tuning.write_attempts) {
    give_up(&job, error);
  }
}

void OffloadExecutor::give_up(OffloadJob* job, const Error& error) {
  context_.ledger.abandon_stale_record(job->block);
  ++context_.counters.offload_failures;
  const bool write_error = error.code == ErrorCode::kIo || error.code == ErrorCode::kCorruption ||
                           error.code == ErrorCode::kBusy ||
                           (error.code == ErrorCode::kCapacity && job->tried);
  if (write_error) {
    context_.health.tell(HealthTopic::kWriting, "blocks could not be written: " + error.message);
  }
  for (SyncWaiter& waiter : syncs_) {
    const bool waits_for_it = job->order <= waiter.order && concerns(waiter, job->identity.hash);
    if (waits_for_it && waiter.status.ok()) waiter.status = error;
  }
  if (!job->coded.payloads.empty()) coded_bytes_ -= job->coded.record.stored_bytes();
  queue_.remove(job);
}

bool OffloadExecutor::concerns(const SyncWaiter& waiter, const BlockHash& hash) const {
  if (waiter.tenant == kNoScope) return true;
  const BlockId block = context_.ledger.index().find(hash);
  return block != kNoBlock && waiter.tenant == context_.ledger.payer(block);
}

}  // namespace ember
