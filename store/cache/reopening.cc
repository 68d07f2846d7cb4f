// Records to index entries: read in shares, put in the order of their chains, a bounded number at a
// time.
#include "store/cache/reopening.h"

#include <algorithm>
#include <utility>

namespace ember {
namespace {

constexpr size_t kEntriesAtOnce = 1024;  // of one visit of the engine thread: some 2 ms
constexpr uint32_t kStepsAtOnce = 4;     // of the walk: they wait for the drive in turns
constexpr size_t kBatchesAhead = 4;      // of a visit's entries each

}  // namespace

Status Reopening::begin() {
  // Both lists before the first entry: the index never names what the cache then does without.
  Conversations::TailListing tails;
  if (context_.conversations != nullptr) {
    EMBER_ASSIGN(tails, context_.conversations->list_tails());
  }
  for (uint32_t share = 0; share < DiskTier::kScanShares; ++share) {
    shares_.push_back(std::make_shared<Share>(context_.layout.block_tokens()));
    shares_.back()->from.share = share;
  }
  EMBER_TRY(read_at_once());
  context_.loading = walking_ = true;
  for (const std::shared_ptr<Share>& share : shares_) take(*share);
  unreadable_ += tails.unreadable;
  for (BlockRecord& record : tails.records) take_tail(std::move(record));
  if (!all_read()) {
    go_on();
    return {};
  }
  entering_ = std::make_shared<Entering>(context_.layout.block_tokens());
  put_together(shares_, *entering_);
  entering_->order = entering_->harvest.parents_first();
  sort_by_use(context_.ledger.opened_unix_us(), *entering_);
  RecordBatch all;
  all.gather(entering_->harvest, entering_->order, entering_->order.places.size());
  enter_batch(all);
  finish();
  return {};
}

// Runs on the read lane, or at opening.
Status Reopening::read_step(DiskTier& disk, RecordProver& prover, size_t most, Share& share) {
  const auto look_at = [&](const BlockRecord& record, const TouchRecord& touch) {
    const bool ours = prover.is_ours(record);
    if (ours && !record.tail && !prover.is_damaged(record)) {
      return share.harvest.add(record, touch);
    }
    if (ours) ++share.unreadable;
    share.foreign.push_back({record.hash, record.position, record.stored_bytes()});
  };
  EMBER_ASSIGN(DiskTier::ScanStep step, disk.scan(share.from, most, look_at));
  share.unreadable += step.unreadable;
  share.from.cursor = std::move(step.cursor);
  share.done = step.done;
  return {};
}

// As much of the store as open() may wait for.
Status Reopening::read_at_once() {
  RecordProver rules = prover();
  size_t most = context_.tuning.records_at_opening;
  for (const std::shared_ptr<Share>& share : shares_) {
    if (most == 0) return {};
    EMBER_TRY(read_step(*context_.disk, rules, most, *share));
    most -= std::min(most, share->harvest.size() + share->foreign.size());
    if (!share->done) return {};
  }
  return {};
}

void Reopening::take(Share& share) {
  unreadable_ += std::exchange(share.unreadable, 0);
  offload_.add_foreign(share.foreign);
  share.foreign.clear();
}

bool Reopening::all_read() const {
  if (reading_failed_) return true;
  return std::all_of(shares_.begin(), shares_.end(), [](const auto& share) { return share->done; });
}

void Reopening::start_steps() {
  if (reading_failed_) return;
  for (const std::shared_ptr<Share>& share : shares_) {
    if (steps_under_way_ == kStepsAtOnce) return;
    if (!share->under_way && !share->done) start_step(share);
  }
}

void Reopening::start_step(const std::shared_ptr<Share>& share) {
  share->under_way = true;
  ++steps_under_way_;
  const Ticket ticket = context_.device.run_host(
      HostLane::kRead, [disk = context_.disk, share, prover = prover(),
                        most = context_.tuning.records_of_a_step]() mutable {
        return read_step(*disk, prover, most, *share);
      });
  context_.tickets.on(ticket,
                      [this, share](const Status& status) { step_ended(*share, status); });
}

void Reopening::step_ended(Share& share, const Status& status) {
  share.under_way = false;
  --steps_under_way_;
  if (!walking_) return;
  take(share);
  if (!status.ok()) {
    // What came so far can be read. What did not must not be written over.
    context_.writable = false;
    context_.health.tell(HealthTopic::kOpening, status.error().message);
    ++unreadable_;
    reading_failed_ = true;
  }
  go_on();
}

// Runs on the read lane, or at opening.
void Reopening::put_together(std::span<const std::shared_ptr<Share>> shares,
                             Entering& entering) {
  for (const std::shared_ptr<Share>& share : shares) {
    entering.harvest.append(std::move(share->harvest));
  }
  entering.entered.assign(entering.harvest.end(), kNoBlock);
}

// The same.
void Reopening::sort_by_use(uint64_t opened_unix_us, Entering& entering) {
  const RecordHarvest& harvest = entering.harvest;
  entering.remembered.reserve(harvest.size());
  for (uint32_t number = 0; number < harvest.end(); ++number) {
    if (!harvest.has(number)) continue;
    const RecordHarvest::Row& row = harvest.row(number);
    const uint64_t used = BlockLedger::use_order(row.position, row.touch(), opened_unix_us);
    entering.remembered.push_back(
        {used, EvictionRanks::shadow_id(row.hash), number, row.hits > 0});
  }
  EvictionRanks::sort_by_use(entering.remembered);
}

void Reopening::start_putting_together() {
  ordering_ = true;
  const auto entering = std::make_shared<Entering>(context_.layout.block_tokens());
  const Ticket ticket = context_.device.run_host(
      HostLane::kRead, [shares = std::exchange(shares_, {}), entering]() -> Status {
        put_together(shares, *entering);
        return {};
      });
  context_.tickets.on(ticket, [this, entering](const Status&) { start_ordering(entering); });
}

// The order of the chains, and beside it that of the latest use, which the shadows will want.
void Reopening::start_ordering(std::shared_ptr<Entering> entering) {
  entering->tasks = 2;
  const auto ended = [this, entering](const Status&) {
    if (--entering->tasks > 0) return;
    ordering_ = false;
    if (walking_) begin_entering(entering);
  };
  context_.tickets.on(context_.device.run_host(HostLane::kRead,
                                               [entering]() -> Status {
                                                 entering->order =
                                                     entering->harvest.parents_first();
                                                 return {};
                                               }),
                      ended);
  context_.tickets.on(
      context_.device.run_host(HostLane::kRead,
                               [entering, at = context_.ledger.opened_unix_us()]() -> Status {
                                 sort_by_use(at, *entering);
                                 return {};
                               }),
      ended);
}

void Reopening::begin_entering(std::shared_ptr<Entering> entering) {
  entering_ = std::move(entering);
  context_.ledger.expect(entering_->order.places.size(), entering_->order.leaves);
  go_on();
}

// A few batches are copied together ahead of the one that enters.
void Reopening::start_batches() {
  Entering& entering = *entering_;
  while (entering.copied < entering.order.places.size() &&
         entering.batches.size() < kBatchesAhead) {
    const auto batch = std::make_shared<RecordBatch>();
    batch->first = entering.copied;
    const size_t count = std::min(kEntriesAtOnce, entering.order.places.size() - batch->first);
    entering.copied += count;
    entering.batches.push_back(batch);
    const Ticket ticket = context_.device.run_host(
        HostLane::kRead, [source = entering_, batch, count]() -> Status {
          batch->gather(source->harvest, source->order, count);
          return {};
        });
    context_.tickets.on(ticket, [this, batch](const Status&) {
      batch->gathered = true;
      if (walking_) go_on();
    });
  }
}

void Reopening::go_on() {
  if (!walking_ || ordering_) return;
  if (entering_ == nullptr) {
    start_steps();
    if (steps_under_way_ == 0 && all_read()) start_putting_together();
    return;
  }
  start_batches();
  if (coming_back_) return;
  // One batch at a visit, after whatever else waits has had its turn.
  if (!entering_->batches.empty()) {
    if (entering_->batches.front()->gathered) come_back();
    return;
  }
  // A look-up may still bring what it has read.
  if (asked_.empty()) finish();
}

void Reopening::come_back() {
  coming_back_ = true;
  const Ticket ticket = context_.device.external_ticket();
  context_.tickets.on(ticket, [this](const Status&) {
    coming_back_ = false;
    come_again();
  });
  context_.device.post(ticket, {});
}

void Reopening::come_again() {
  if (!walking_) {
    const EvictionRanks& ranks = context_.ledger.ranks();
    if (recalling_ && ranks.to_recall() > 0 && !ranks.wants_marks()) come_back();
    return;
  }
  if (entering_ != nullptr && !entering_->batches.empty() &&
      entering_->batches.front()->gathered) {
    const std::shared_ptr<RecordBatch> batch = entering_->batches.front();
    entering_->batches.pop_front();
    start_batches();
    enter_batch(*batch);
  }
  go_on();
}

void Reopening::finish() {
  walking_ = context_.loading = false;
  context_.ledger.loaded(context_.disk_limit_bytes, std::move(entering_->remembered),
                         std::move(entering_->entered));
  // What lies below them, or behind them in a damaged table, can be reached by its own key.
  set_aside_ = unreadable_ > 0;
  recalling_ = true;
  for (const auto& [parent, hash] : waiting_tails_) {
    if (context_.tails.find(hash) == nullptr) continue;
    context_.tails.erase(hash);
    doomed_tails_.push_back(hash);
  }
  waiting_tails_.clear();
  known_missing_.clear();
  drop_empty_holes();
  offload_.erase_tails(std::exchange(doomed_tails_, {}));
  if (context_.ledger.ranks().to_recall() > 0 && !coming_back_) come_back();
  if (entering_->order.places.size() <= kEntriesAtOnce) return entering_.reset();
  // The memory of a million records is given back by a task, not here.
  const Ticket ticket = context_.device.run_host(
      HostLane::kRead,
      [done = std::exchange(entering_, nullptr), disk = context_.disk]() -> Status {
        disk->opening_ended();
        return {};
      });
  context_.tickets.on(ticket, [](const Status&) {});
}

}  // namespace ember
