// The scheduler's loop: what comes in, what completes, what goes.
#include "engine/runtime/scheduler.h"

#include <optional>

#include "engine/runtime/scheduler_impl.h"

namespace ember {
namespace {

constexpr int64_t kIdleWaitUs = 100'000;

const Status& cancelled() {
  static const Status status(ErrorCode::kCancelled, "cancelled");
  return status;
}

Status expect_up_to(const char* name, size_t found, size_t most) {
  if (found >= 1 && found <= most) return {};
  return {ErrorCode::kInvalidArgument, std::string(name) + " is " + std::to_string(found) +
                                           ", expected 1 to " + std::to_string(most)};
}

}  // namespace

Status check_limits(const SchedulerLimits& limits, size_t chunk_tokens) {
  EMBER_TRY(expect_up_to("chunk_tokens", chunk_tokens, kMostChunkTokens));
  EMBER_TRY(expect_up_to("max_running", limits.max_running, kMostRunning));
  return expect_up_to("max_queued", limits.max_queued, kMostQueued);
}

SchedulerImpl::SchedulerImpl(Device& device, BlockCache& cache, Forward& forward,
                             SchedulerOptions options)
    : device_(device),
      cache_(cache),
      forward_(forward),
      options_(std::move(options)),
      costs_(options_.costs),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock()) {
  running_.reserve(options_.limits.max_running);
  step_.reserve(options_.limits.max_running);
  step_members_.reserve(options_.limits.max_running);
}

SchedulerImpl::~SchedulerImpl() {
  cancel_all();
  while (step_ticket_) tick(clock_.now_us() + kIdleWaitUs);
}

// Why a request cannot be taken; ok where it can.
Status SchedulerImpl::refusal(const Request& request) {
  if (request.prompt.empty()) return {ErrorCode::kInvalidArgument, "the prompt has no tokens"};
  if (request.prompt.size() >= options_.context_tokens) {
    return {ErrorCode::kInvalidArgument, "the prompt has " + std::to_string(request.prompt.size()) +
                                             " tokens; the context holds " +
                                             std::to_string(options_.context_tokens) +
                                             ", answer included"};
  }
  const SchedulerLimits& limits = options_.limits;
  if (queued_.size() >= limits.max_queued) {
    return {ErrorCode::kBusy, std::to_string(queued_.size()) + " requests are waiting already"};
  }
  const auto own = tenants_.find(request.scope.tenant);
  const size_t share = limits.max_queued_per_tenant > 0 ? limits.max_queued_per_tenant
                                                        : queue_share(limits.max_queued);
  if (own != tenants_.end() && own->second.queued >= share) {
    return {ErrorCode::kBusy, std::to_string(own->second.queued) +
                                  " requests of this tenant are waiting already"};
  }
  return {};
}

Result<uint64_t> SchedulerImpl::submit(Request request) {
  EMBER_CHECK(request.max_tokens >= 1, "a request draws at least one token");
  EMBER_TRY(refusal(request));
  auto sequence = std::make_unique<Sequence>();
  const uint64_t id = next_id_++;
  sequence->id = id;
  sequence->prompt_tokens = request.prompt.size();
  sequence->limit_tokens =
      std::min<size_t>(options_.context_tokens, request.prompt.size() + request.max_tokens);
  sequence->tokens.reserve(sequence->limit_tokens);
  sequence->tokens = request.prompt;
  sequence->outcome.prompt_tokens = request.prompt.size();
  sequence->outcome.token_ids.reserve(sequence->limit_tokens - request.prompt.size());
  sequence->submitted_us = clock_.now_us();
  sequence->request = std::move(request);
  ++tenants_[sequence->request.scope.tenant].queued;
  queued_.push_back(std::move(sequence));
  return id;
}

bool SchedulerImpl::cancel(uint64_t id) {
  const auto is_it = [id](const Place& sequence) { return sequence->id == id; };
  if (auto found = std::find_if(queued_.begin(), queued_.end(), is_it); found != queued_.end()) {
    const Place sequence = std::move(*found);
    queued_.erase(found);
    leave(sequence->request.scope.tenant, &Tenant::queued);
    finish(*sequence, FinishReason::kFailed, cancelled());
    return true;
  }
  auto found = std::find_if(running_.begin(), running_.end(), is_it);
  if (found == running_.end() || (*found)->phase == Phase::kDone) return false;
  finish(**found, FinishReason::kFailed, cancelled());
  return true;
}

void SchedulerImpl::cancel_all() {
  std::vector<uint64_t> ids;
  for (const Place& sequence : queued_) ids.push_back(sequence->id);
  for (const Place& sequence : running_) ids.push_back(sequence->id);
  for (const uint64_t id : ids) cancel(id);
}

void SchedulerImpl::watch(Ticket ticket, std::function<void(const Status&)> done) {
  watched_.emplace(ticket, Watch{std::move(done)});
}

void SchedulerImpl::watch_for(Ticket ticket, int64_t timeout_us,
                              std::function<void(const Status&)> done) {
  watched_.emplace(ticket, Watch{std::move(done), clock_.now_us() + timeout_us});
}

std::shared_ptr<const TicketOutcome> SchedulerImpl::follow(Ticket ticket) {
  auto outcome = std::make_shared<TicketOutcome>();
  watch(ticket, [outcome](const Status& status) { *outcome = {true, status}; });
  return outcome;
}

bool SchedulerImpl::wait_for(const TicketOutcome& outcome, int64_t timeout_us) {
  const int64_t deadline_us = clock_.now_us() + timeout_us;
  run_until([&] { return outcome.reported || clock_.now_us() >= deadline_us; });
  return outcome.reported;
}

bool SchedulerImpl::tick(int64_t deadline_us) {
  drop_done();
  admit();
  notice_restored();
  submit_step();
  const size_t n = device_.wait_any(deadline_us, completions_);
  for (size_t i = 0; i < n; ++i) handle(completions_[i]);
  if (n == 0) room_may_be_ = true;  // what the cache gives up for its deadline completes no ticket
  give_up_watching();
  drop_done();
  cache_.tick();
  return !queued_.empty() || !running_.empty() || !watched_.empty() || step_ticket_ ||
         cache_.busy();
}

void SchedulerImpl::run_until(const std::function<bool()>& finished) {
  while (!finished()) tick(clock_.now_us() + kIdleWaitUs);
}

void SchedulerImpl::handle(const Completion& completion) {
  if (completion.ticket == step_ticket_) {
    finish_step(completion.status);
  } else if (auto it = watched_.find(completion.ticket); it != watched_.end()) {
    auto done = std::move(it->second.done);
    watched_.erase(it);
    if (done) done(completion.status);
  } else {
    const bool known = cache_.handle(completion);
    EMBER_CHECK(known, "a completion that nobody waits for");
    room_may_be_ = true;
  }
}

void SchedulerImpl::finish(Sequence& sequence, FinishReason reason, Status status) {
  if (sequence.chain && sequence.request.use_cache && sequence.phase >= Phase::kPrefill) {
    cache_.commit_tail(*sequence.chain);
  }
  if (sequence.phase == Phase::kDecode) {
    record(TraceKind::kDecode, sequence, sequence.first_token_us,
           sequence.outcome.token_ids.size());
  } else if (!status.ok() && status.error().code == ErrorCode::kCancelled) {
    record(TraceKind::kCancel, sequence, clock_.now_us(), 0);
  }
  if (sequence.ahead) sequence.chain->give_way();
  sequence.phase = Phase::kDone;
  sequence.outcome.finish = reason;
  sequence.outcome.status = std::move(status);
  if (sequence.request.on_done) sequence.request.on_done(sequence.outcome);
}

void SchedulerImpl::give_up_watching() {
  const int64_t now_us = clock_.now_us();
  std::vector<std::function<void(const Status&)>> late;  // they may watch others
  for (auto& [ticket, watch] : watched_) {
    if (watch.deadline_us > now_us) continue;
    watch.deadline_us = INT64_MAX;
    late.push_back(std::exchange(watch.done, nullptr));
  }
  for (const auto& done : late) done({ErrorCode::kBusy, "it did not end in time"});
}

// A sequence that ended while a step with it is in flight keeps its slots until the step's ticket.
void SchedulerImpl::drop_done() {
  if (step_ticket_) return;
  std::erase_if(running_, [this](const Place& sequence) {
    if (sequence->phase != Phase::kDone) return false;
    tokens_in_flight_ -= sequence->limit_tokens;
    room_may_be_ = true;
    leave(sequence->request.scope.tenant, &Tenant::running);
    return true;
  });
}

void SchedulerImpl::leave(const std::string& tenant, size_t Tenant::*count) {
  const auto found = tenants_.find(tenant);
  --(found->second.*count);
  if (found->second.queued == 0 && found->second.running == 0) tenants_.erase(found);
}

void SchedulerImpl::record(TraceKind kind, const Sequence& sequence, int64_t begin_us,
                           uint64_t value) {
  if (options_.trace == nullptr) return;
  options_.trace->add({kind, begin_us, clock_.now_us(), sequence.id, value});
}

std::unique_ptr<Scheduler> Scheduler::create(Device& device, BlockCache& cache, Forward& forward,
                                             SchedulerOptions options) {
  return std::make_unique<SchedulerImpl>(device, cache, forward, std::move(options));
}

}  // namespace ember
