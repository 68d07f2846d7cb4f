// Admission: from the queue to device slots, and on to the first step.
#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/runtime/scheduler_impl.h"
#include "engine/runtime/single_flight.h"

namespace ember {

// What waits behind a full house is brought to RAM meanwhile, so that its restore is short when its
// turn comes. Device slots are not touched.
void SchedulerImpl::prefetch_queued() {
  for (const Place& sequence : queued_) {
    if (sequence->prefetch_planned || sequence->set_aside || !sequence->request.use_cache) continue;
    const Request& request = sequence->request;
    const BlockCache::Match match = cache_.match(request.prompt, request.scope);
    if (match.looking_up) continue;
    sequence->prefetch_planned = true;
    const RestorePlan plan =
        plan_restore(sequence->prompt_tokens, match, costs_, options_.restore);
    if (plan.from[static_cast<size_t>(Tier::kDisk)] == 0) continue;
    sequence->prefetch = cache_.prefetch(request.prompt, plan.restore_tokens, request.scope);
  }
}

// Somebody's request waits or runs.
bool SchedulerImpl::others_first() const {
  const auto asked = [](const Place& sequence) {
    return !sequence->request.background && sequence->phase != Phase::kDone;
  };
  return std::any_of(queued_.begin(), queued_.end(), asked) ||
         std::any_of(running_.begin(), running_.end(), asked);
}

// What runs in the background ends when somebody's request waits: its blocks so far are committed.
void SchedulerImpl::make_way() {
  if (!others_first()) return;
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (!sequence.request.background || sequence.phase == Phase::kDone) continue;
    finish(sequence, FinishReason::kFailed, {ErrorCode::kBusy, "it gave way to a request"});
  }
}

// One that finds no device slots waits until another ends, and nobody passes it. One whose prefix
// is being computed lets others pass: it has nothing to do yet.
void SchedulerImpl::admit() {
  make_way();
  if (!room_may_be_) return prefetch_queued();
  for (const Place& sequence : queued_) sequence->set_aside = still_awaits(*sequence, running_);
  while (running_.size() < options_.limits.max_running) {
    const std::optional<size_t> next = next_queued();
    if (!next) break;
    const int64_t start_us = clock_.now_us();
    BlockCache::Match match;
    if (queued_[*next]->request.use_cache && has_work_elsewhere(*queued_[*next], match)) {
      queued_[*next]->set_aside = true;
      continue;
    }
    // Out of the queue first: what a callback of this one does to the queue is no concern then.
    const auto at = queued_.begin() + static_cast<std::ptrdiff_t>(*next);
    Place place = std::move(*at);
    queued_.erase(at);
    const std::string tenant = place->request.scope.tenant;
    if (!fits_in_flight(*place) || !admit_one(place, match, start_us)) {
      place->found_no_room = !place->request.background;
      room_may_be_ = false;
      queued_.insert(queued_.begin() + static_cast<std::ptrdiff_t>(*next), std::move(place));
      break;
    }
    leave(tenant, &Tenant::queued);
  }
  prefetch_queued();
}

std::optional<size_t> SchedulerImpl::next_queued() {
  std::vector<Waiting> waiting;
  waiting.reserve(queued_.size());
  const bool others = others_first();
  for (const Place& sequence : queued_) {
    const Tenant& tenant = tenants_.at(sequence->request.scope.tenant);
    const bool aside = sequence->set_aside || (others && sequence->request.background);
    waiting.push_back({sequence->found_no_room, aside, tenant.running, tenant.last_turn});
  }
  return next_to_admit(waiting, options_.limits.max_running_per_tenant);
}

// Its records are being looked up, or another one is computing what it needs.
bool SchedulerImpl::has_work_elsewhere(Sequence& queued, BlockCache::Match& match) {
  match = cache_.match(queued.request.prompt, queued.request.scope);
  return match.looking_up ||
         awaits_prefix(queued, running_, match.tokens, cache_.layout().block_tokens());
}

bool SchedulerImpl::fits_in_flight(const Sequence& sequence) const {
  return running_.empty() || options_.limits.max_tokens_in_flight == 0 ||
         tokens_in_flight_ + sequence.limit_tokens <= options_.limits.max_tokens_in_flight;
}

// False: it goes back to the queue until there is room.
bool SchedulerImpl::admit_one(Place& place, const BlockCache::Match& match, int64_t start_us) {
  Sequence& sequence = *place;
  const RestorePlan plan = plan_for(sequence, match);
  const bool patient = options_.restore == RestorePolicy::kAlways;
  auto chain = cache_.open_chain(sequence.request.prompt, plan.restore_tokens,
                                 sequence.limit_tokens, sequence.request.scope,
                                 patient ? 0 : std::llround(plan.patience_us));
  const bool full = !chain.ok() && chain.error().code == ErrorCode::kCapacity;
  if (full && (!running_.empty() || cache_.busy())) return false;
  sequence.admitted_us = clock_.now_us();
  sequence.outcome.ttft.queue_us = start_us - sequence.submitted_us;
  sequence.outcome.ttft.match_us = sequence.admitted_us - start_us;
  if (!chain.ok()) {
    finish(sequence, FinishReason::kFailed, chain.error());
    return true;
  }
  record(TraceKind::kQueued, sequence, sequence.submitted_us, 0);
  record(TraceKind::kMatch, sequence, start_us, match.tokens);
  sequence.chain = std::move(chain).value();
  sequence.prefetch.reset();  // the chain holds what it restores
  sequence.plan = plan;
  sequence.outcome.skipped_tokens = plan.skipped_tokens;
  sequence.outcome.predicted_restore_us = std::llround(plan.restore_us);
  sequence.outcome.predicted_compute_us = std::llround(plan.compute_us);
  sequence.phase = Phase::kRestoring;
  tokens_in_flight_ += sequence.limit_tokens;
  Tenant& tenant = tenants_.at(sequence.request.scope.tenant);
  ++tenant.running;
  tenant.last_turn = ++turns_;
  running_.push_back(std::move(place));
  return true;
}

RestorePlan SchedulerImpl::plan_for(const Sequence& sequence, const BlockCache::Match& match) {
  if (options_.restore == RestorePolicy::kByCost) {
    return probe_.plan(sequence.prompt_tokens, match, costs_);
  }
  return plan_restore(sequence.prompt_tokens, match, costs_, options_.restore);
}

void SchedulerImpl::notice_restored() {
  for (const Place& sequence : running_) {
    if (sequence->phase != Phase::kRestoring) continue;
    trace_groups(*sequence);
    if (!sequence->ahead && sequence->chain->ready()) begin_prefill(*sequence);
  }
}

void SchedulerImpl::trace_groups(Sequence& sequence) {
  if (options_.trace == nullptr || sequence.plan.restore_tokens == 0) return;
  while (sequence.traced_groups < sequence.chain->readable_groups()) {
    record(TraceKind::kGroup, sequence, sequence.admitted_us, sequence.traced_groups++);
  }
}

void SchedulerImpl::begin_prefill(Sequence& sequence) {
  Outcome& outcome = sequence.outcome;
  sequence.computed = sequence.chain->length();
  outcome.restore = sequence.chain->restore_report();
  outcome.computed_tokens = sequence.prompt_tokens - sequence.computed;
  // A step ahead has begun to compute meanwhile.
  const int64_t arrived_us = sequence.admitted_us + outcome.restore.restore_us;
  sequence.restored_us = std::min(clock_.now_us(), arrived_us);
  outcome.ttft.restore_us = sequence.restored_us - sequence.admitted_us;
  record(TraceKind::kRestore, sequence, sequence.admitted_us, sequence.computed);
  sequence.phase = Phase::kPrefill;
  learn_restore(sequence);
}

// Damage says nothing of how long reading takes.
void SchedulerImpl::learn_restore(const Sequence& sequence) {
  const RestoreReport& report = sequence.outcome.restore;
  if (report.damaged_blocks > 0) return;
  if (report.total() >= sequence.plan.restore_tokens) {
    costs_.saw_restore(report.restored_tokens, report.restore_us);
  } else {
    costs_.saw_cut_restore(sequence.plan.from, report.restore_us);
  }
}

}  // namespace ember
