// Records to index entries: read in shares, put in the order of their chains, a bounded number at a
// time.
#include "store/cache/reopening.h"

#include <algorithm>
#include <utility>

namespace ember {
namespace {

constexpr size_t kEntriesAtOnce = 1024;  // of one visit of the engine thread: some 2 ms
constexpr uint32_t kStepsAtOnce = 3;     // of the walk: two are read while one is handed over
constexpr size_t kPrefetchAhead = 8;     // records

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
  put_in_order(shares_, *entering_);
  sort_by_use(context_.ledger.opened_unix_us(), *entering_);
  enter_some(entering_->order.places.size());
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

void Reopening::start_ordering() {
  ordering_ = true;
  const auto entering = std::make_shared<Entering>(context_.layout.block_tokens());
  const Ticket ticket = context_.device.run_host(
      HostLane::kRead, [shares = std::exchange(shares_, {}), entering]() -> Status {
        put_in_order(shares, *entering);
        return {};
      });
  context_.tickets.on(ticket, [this, entering](const Status&) {
    ordering_ = false;
    if (walking_) begin_entering(entering);
  });
}

// What the shadows will want is sorted meanwhile.
void Reopening::begin_entering(std::shared_ptr<Entering> entering) {
  entering_ = std::move(entering);
  context_.ledger.expect(entering_->order.places.size(), entering_->order.leaves);
  sorting_ = true;
  const Ticket ticket = context_.device.run_host(
      HostLane::kRead, [sorted = entering_, opened = context_.ledger.opened_unix_us()]() -> Status {
        sort_by_use(opened, *sorted);
        return {};
      });
  context_.tickets.on(ticket, [this](const Status&) {
    sorting_ = false;
    go_on();
  });
  go_on();
}

// Runs on the read lane, or at opening.
void Reopening::put_in_order(std::span<const std::shared_ptr<Share>> shares,
                             Entering& entering) {
  RecordHarvest& harvest = entering.harvest;
  for (const std::shared_ptr<Share>& share : shares) harvest.append(std::move(share->harvest));
  entering.order = harvest.parents_first();
}

// The same.
void Reopening::sort_by_use(uint64_t opened_unix_us, Entering& entering) {
  const RecordHarvest& harvest = entering.harvest;
  entering.remembered.reserve(entering.order.places.size());
  for (const RecordHarvest::Place& place : entering.order.places) {
    const RecordHarvest::Row& row = harvest.row(place.number);
    const uint64_t used = BlockLedger::use_order(row.position, row.touch(), opened_unix_us);
    entering.remembered.push_back({used, EvictionRanks::shadow_id(row.hash), row.hits > 0});
  }
  EvictionRanks::sort_by_use(entering.remembered);
}

void Reopening::go_on() {
  if (!walking_ || ordering_) return;
  if (entering_ == nullptr) {
    start_steps();
    if (steps_under_way_ == 0 && all_read()) start_ordering();
    return;
  }
  if (coming_back_) return;
  enter_some(kEntriesAtOnce);
  if (entering_->next < entering_->order.places.size()) return come_back();
  // A look-up may still bring what it has read.
  if (asked_.empty() && !sorting_) finish();
}

// More than one visit's worth is ready: after whatever else waits has had its turn.
void Reopening::come_back() {
  coming_back_ = true;
  const Ticket ticket =
      context_.device.run_host(HostLane::kRead, []() -> Status { return {}; });
  context_.tickets.on(ticket, [this](const Status&) {
    coming_back_ = false;
    if (walking_) return go_on();
    const EvictionRanks& ranks = context_.ledger.ranks();
    if (recalling_ && ranks.to_recall() > 0 && !ranks.wants_marks()) come_back();
  });
}

void Reopening::enter_some(size_t most) {
  const RecordHarvest& harvest = entering_->harvest;
  const std::vector<RecordHarvest::Place>& places = entering_->order.places;
  const size_t end = std::min(places.size(), entering_->next + most);
  uint32_t name = 0;  // of the record before: that of most in a chain
  ScopeId scope = places.empty() ? kNoScope : scope_of(harvest.name(name));
  for (; entering_->next < end; ++entering_->next) {
    const size_t ahead = entering_->next + kPrefetchAhead;
    if (ahead < places.size()) harvest.prefetch(places[ahead].number);
    const RecordHarvest::Place place = places[entering_->next];
    const RecordHarvest::Row& row = harvest.row(place.number);
    if (std::exchange(name, row.scope) != row.scope) scope = scope_of(harvest.name(name));
    if (!enter(harvest, place, scope)) set_aside(row);
  }
}

ScopeId Reopening::scope_of(const std::string& name) const {
  const Result<ScopeId> scope = context_.scopes.add(name);
  return scope.ok() ? *scope : kNoScope;
}

// The parent's entry: kNoBlock for a first block; nothing if it has not come.
std::optional<BlockId> Reopening::parent_of(ScopeId scope, const BlockHash& parent,
                                            uint32_t position) const {
  if (scope == kNoScope) return std::nullopt;
  if (position == 0) {
    if (parent != context_.scopes.hasher(scope).root()) return std::nullopt;
    return kNoBlock;
  }
  const RadixIndex& index = context_.ledger.index();
  const BlockId block = index.find(parent);
  if (block == kNoBlock || context_.ledger.is_tail(block)) return std::nullopt;
  const ScopeId above = index.scope(block);
  if (above != scope && above != kSharedScope) return std::nullopt;
  if (context_.ledger.entry(block).position + 1 != position) return std::nullopt;
  return block;
}

bool Reopening::enter(const RecordHarvest& harvest, RecordHarvest::Place place, ScopeId scope) {
  const RecordHarvest::Row& row = harvest.row(place.number);
  const std::optional<BlockId> parent = parent_of(scope, row.parent, row.position);
  if (!parent) return false;
  BlockLedger& ledger = context_.ledger;
  const TokenSpan tokens = harvest.tokens(place.number);
  if (const BlockId known = ledger.index().find_child(scope, *parent, tokens); known != kNoBlock) {
    meet(known, row);
    return true;
  }
  const BlockId block =
      ledger.adopt(scope, *parent, tokens, row.hash, row.numerics_build, row.touch());
  if (place.begins_run && place.run > 0) ledger.expect_run(block, place.run);
  const std::string& publisher_name = harvest.name(row.publisher);
  if (scope == kSharedScope && !publisher_name.empty()) {
    const Result<ScopeId> publisher = context_.scopes.add(publisher_name);
    if (publisher.ok()) ledger.set_publisher(block, *publisher);
  }
  if (row.epoch == 0) {  // a hole: the drive was full once, or its groups were damaged
    ledger.add_hole(block);
    holes_.push_back({row.hash, row.position, 0});
    release_tails(row.hash, block);
    return true;
  }
  ledger.set_stored(block, static_cast<int32_t>(row.epoch & 0x7fffffffu), row.stored_bytes);
  if (!walking_) offload_.forget_foreign(row.hash);
  release_tails(row.hash, block);
  return true;
}

// One that was asked for by a prompt, or computed anew, since opening.
void Reopening::meet(BlockId known, const RecordHarvest::Row& row) {
  BlockLedger& ledger = context_.ledger;
  const BlockEntry& entry = ledger.entry(known);
  const bool same = entry.numerics_build == row.numerics_build && !entry.damaged;
  if (same && row.epoch != 0 && !entry.in(Tier::kDisk)) {
    ledger.set_stored(known, static_cast<int32_t>(row.epoch & 0x7fffffffu), row.stored_bytes);
  }
  ledger.recall(known, row.touch());
  release_tails(row.hash, known);
}

// Below a record that cannot be read it is below a hole; else it is what must not be.
void Reopening::set_aside(const RecordHarvest::Row& row) {
  if (unreadable_ == 0) ++unreachable_;
  const ForeignRecord aside{row.hash, row.position, row.stored_bytes};
  offload_.add_foreign({&aside, 1});
}

void Reopening::release_tails(const BlockHash& hash, BlockId block) {
  if (waiting_tails_.empty()) return;
  const auto [first, last] = waiting_tails_.equal_range(hash);
  for (auto it = first; it != last; ++it) enter_tail(block, it->second);
  waiting_tails_.erase(first, last);
}

void Reopening::take_tail(BlockRecord record) {
  RecordProver rules = prover();
  if (!rules.is_ours(record)) {
    context_.tails.add(std::move(record));  // another namespace's: counted, and the first to go
    return;
  }
  const BlockHash hash = record.hash;
  const BlockHash parent = record.parent;
  if (!record.tail || rules.is_damaged(record)) {
    ++unreadable_;
    doomed_tails_.push_back(hash);
    return;
  }
  const std::optional<BlockId> known =
      parent_of(scope_of(record.scope), parent, record.position);
  context_.tails.add(std::move(record));
  if (known) return enter_tail(*known, hash);
  waiting_tails_.emplace(parent, hash);
}

void Reopening::enter_tail(BlockId parent, const BlockHash& hash) {
  const BlockRecord* record = context_.tails.find(hash);
  if (record == nullptr) return;  // it has made room since
  const ScopeId scope = scope_of(record->scope);
  if (!parent_of(scope, record->parent, record->position)) return;
  const BlockId block =
      context_.ledger.adopt(scope, parent, record->tokens, hash,
                            record->numerics_build, TouchRecord{});
  if (context_.ledger.entry(block).numerics_build != record->numerics_build) return;
  context_.ledger.set_stored(block, kTailEpoch, record->stored_bytes());
}

// Holes below which nothing is left are of no use. The deepest first.
void Reopening::drop_empty_holes() {
  std::sort(holes_.begin(), holes_.end(),
            [](const auto& a, const auto& b) { return a.position > b.position; });
  for (const ForeignRecord& hole : holes_) {
    if (context_.ledger.forget_empty_hole(hole.hash)) offload_.add_foreign({&hole, 1});
  }
  holes_.clear();
}

void Reopening::finish() {
  walking_ = context_.loading = false;
  context_.ledger.loaded(context_.disk_limit_bytes, std::move(entering_->remembered));
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
      HostLane::kRead, [done = std::exchange(entering_, nullptr)]() -> Status { return {}; });
  context_.tickets.on(ticket, [](const Status&) {});
}

}  // namespace ember
