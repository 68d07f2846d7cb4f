// The scheduler's loop: plans are made here, work is done by the device and comes back by ticket.
#include "engine/runtime/scheduler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/runtime/sequence.h"
#include "engine/runtime/single_flight.h"

namespace ember {
namespace {

class SchedulerImpl final : public Scheduler {
 public:
  SchedulerImpl(Device& device, BlockCache& cache, Forward& forward, SchedulerOptions options)
      : device_(device),
        cache_(cache),
        forward_(forward),
        options_(std::move(options)),
        costs_(options_.costs),
        clock_(options_.clock != nullptr ? *options_.clock : system_clock()) {
    running_.reserve(options_.max_running);
    step_.reserve(options_.max_running);
    step_members_.reserve(options_.max_running);
  }

  // The device may still be writing into the slots of a step: its chains outlive the ticket.
  ~SchedulerImpl() override {
    cancel_all();
    while (step_ticket_) tick(clock_.now_us() + kIdleWaitUs);
  }

  Status submit(Request request) override;
  void cancel_all() override;
  void watch(Ticket ticket, std::function<void(const Status&)> done) override {
    watched_.emplace(ticket, std::move(done));
  }
  std::shared_ptr<const TicketOutcome> follow(Ticket ticket) override {
    auto outcome = std::make_shared<TicketOutcome>();
    watch(ticket, [outcome](const Status& status) { *outcome = {true, status}; });
    return outcome;
  }
  bool wait_for(const TicketOutcome& outcome, int64_t timeout_us) override {
    const int64_t deadline_us = clock_.now_us() + timeout_us;
    run_until([&] { return outcome.reported || clock_.now_us() >= deadline_us; });
    return outcome.reported;
  }
  bool tick(int64_t deadline_us) override;
  void run_until(const std::function<bool()>& finished) override {
    while (!finished()) tick(clock_.now_us() + kIdleWaitUs);
  }

 private:
  static constexpr int64_t kIdleWaitUs = 100'000;

  void admit();
  bool admit_one(std::unique_ptr<Sequence>& place, const BlockCache::Match& match,
                 int64_t start_us);
  RestorePlan plan_for(const Sequence& sequence, const BlockCache::Match& match);
  void notice_restored();
  void learn_restore(const Sequence& sequence);
  void learn_compute(const Sequence& sequence);
  void submit_step();
  void add_to_step(Sequence& sequence, size_t tokens);
  void finish_step(const Status& status);
  void take_drawn(Sequence& sequence, TokenId id);
  void finish(Sequence& sequence, FinishReason reason, Status status);
  void drop_done();
  bool is_stop(TokenId id) const {
    return std::find(options_.stop_ids.begin(), options_.stop_ids.end(),
                     static_cast<uint32_t>(id)) != options_.stop_ids.end();
  }

  Device& device_;
  BlockCache& cache_;
  Forward& forward_;
  SchedulerOptions options_;
  CostModel costs_;
  RestoreProbe probe_;
  const Clock& clock_;
  std::deque<std::unique_ptr<Sequence>> queued_;
  std::vector<std::unique_ptr<Sequence>> running_;
  uint64_t next_id_ = 1;
  std::unordered_map<Ticket, std::function<void(const Status&)>> watched_;
  Ticket step_ticket_;
  int64_t step_began_us_ = 0;
  std::vector<StepSequence> step_;
  std::vector<Sequence*> step_members_;
  std::array<Completion, 64> completions_;
};

Status SchedulerImpl::submit(Request request) {
  EMBER_CHECK(request.max_tokens >= 1, "a request draws at least one token");
  if (request.prompt.empty()) return {ErrorCode::kInvalidArgument, "the prompt has no tokens"};
  if (request.prompt.size() >= options_.context_tokens) {
    return {ErrorCode::kInvalidArgument, "the prompt has " + std::to_string(request.prompt.size()) +
                                             " tokens; the context holds " +
                                             std::to_string(options_.context_tokens) +
                                             ", answer included"};
  }
  if (queued_.size() >= options_.max_queued) {
    return {ErrorCode::kBusy, std::to_string(queued_.size()) + " requests are waiting already"};
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->id = next_id_++;
  sequence->prompt_tokens = request.prompt.size();
  sequence->limit_tokens =
      std::min<size_t>(options_.context_tokens, request.prompt.size() + request.max_tokens);
  sequence->tokens.reserve(sequence->limit_tokens);
  sequence->tokens = request.prompt;
  sequence->outcome.prompt_tokens = request.prompt.size();
  sequence->outcome.token_ids.reserve(sequence->limit_tokens - request.prompt.size());
  sequence->submitted_us = clock_.now_us();
  sequence->request = std::move(request);
  queued_.push_back(std::move(sequence));
  return {};
}

void SchedulerImpl::cancel_all() {
  const Status cancelled(ErrorCode::kCancelled, "cancelled");
  for (auto& sequence : queued_) finish(*sequence, FinishReason::kFailed, cancelled);
  queued_.clear();
  for (auto& sequence : running_) {
    if (sequence->phase != Phase::kDone) finish(*sequence, FinishReason::kFailed, cancelled);
  }
  drop_done();
}

bool SchedulerImpl::tick(int64_t deadline_us) {
  admit();
  notice_restored();
  submit_step();
  const size_t n = device_.wait_any(deadline_us, completions_);
  for (size_t i = 0; i < n; ++i) {
    Completion& completion = completions_[i];
    if (completion.ticket == step_ticket_) {
      finish_step(completion.status);
    } else if (auto it = watched_.find(completion.ticket); it != watched_.end()) {
      auto done = std::move(it->second);
      watched_.erase(it);
      done(completion.status);
    } else {
      const bool known = cache_.handle(completion);
      EMBER_CHECK(known, "a completion that nobody waits for");
    }
  }
  cache_.tick();
  return !queued_.empty() || !running_.empty() || !watched_.empty() || step_ticket_ ||
         cache_.busy();
}

// Requests come in their order; one that finds no device slots waits until another ends, and nobody
// passes it. One whose prefix is being computed lets others pass: it has nothing to do yet.
void SchedulerImpl::admit() {
  for (size_t i = 0; i < queued_.size() && running_.size() < options_.max_running;) {
    if (still_awaits(*queued_[i], running_)) {
      ++i;
      continue;
    }
    const int64_t start_us = clock_.now_us();
    BlockCache::Match match;
    if (queued_[i]->request.use_cache) {
      match = cache_.match(queued_[i]->request.prompt, queued_[i]->request.scope);
      if (match.looking_up) {
        ++i;
        continue;
      }
      const size_t span = cache_.layout().block_tokens();
      if (awaits_prefix(*queued_[i], running_, match.tokens, span)) continue;
    }
    if (!admit_one(queued_[i], match, start_us)) return;
    queued_.erase(queued_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// False: it stays queued until a place is free.
bool SchedulerImpl::admit_one(std::unique_ptr<Sequence>& place, const BlockCache::Match& match,
                              int64_t start_us) {
  Sequence& sequence = *place;
  const RestorePlan plan = plan_for(sequence, match);
  const bool patient = options_.restore == RestorePolicy::kAlways;
  auto chain = cache_.open_chain(sequence.request.prompt, plan.restore_tokens,
                                 sequence.limit_tokens, sequence.request.scope,
                                 patient ? 0 : std::llround(plan.patience_us));
  const bool full = !chain.ok() && chain.error().code == ErrorCode::kCapacity;
  if (full && (!running_.empty() || cache_.busy())) return false;
  sequence.outcome.ttft.queue_us = start_us - sequence.submitted_us;
  sequence.outcome.ttft.match_us = clock_.now_us() - start_us;
  if (!chain.ok()) {
    finish(sequence, FinishReason::kFailed, chain.error());
    return true;
  }
  sequence.chain = std::move(chain).value();
  sequence.plan = plan;
  sequence.outcome.skipped_tokens = plan.skipped_tokens;
  sequence.outcome.predicted_restore_us = std::llround(plan.restore_us);
  sequence.outcome.predicted_compute_us = std::llround(plan.compute_us);
  sequence.phase = Phase::kRestoring;
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
  for (auto& sequence : running_) {
    if (sequence->phase != Phase::kRestoring || !sequence->chain->ready()) continue;
    sequence->computed = sequence->chain->length();
    sequence->outcome.restore = sequence->chain->restore_report();
    sequence->outcome.computed_tokens = sequence->prompt_tokens - sequence->computed;
    sequence->restored_us = clock_.now_us();
    sequence->outcome.ttft.restore_us = sequence->restored_us - sequence->submitted_us -
                                        sequence->outcome.ttft.queue_us -
                                        sequence->outcome.ttft.match_us;
    sequence->phase = Phase::kPrefill;
    learn_restore(*sequence);
  }
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

// From steps that one prompt has nearly for itself.
void SchedulerImpl::learn_compute(const Sequence& sequence) {
  const size_t others = step_members_.size() - 1;
  if (sequence.phase != Phase::kPrefill || 8 * others > sequence.in_step) return;
  costs_.saw_compute(sequence.in_step, sequence.computed, clock_.now_us() - step_began_us_);
}

void SchedulerImpl::add_to_step(Sequence& sequence, size_t tokens) {
  const bool last = tokens == sequence.uncomputed();
  step_.push_back(StepSequence{
      .tokens = std::span(sequence.tokens).subspan(sequence.computed, tokens),
      .first_position = static_cast<int32_t>(sequence.computed),
      .block_table = sequence.chain->block_table(),
      .logit_rows = last ? 1u : 0u,
      .sample = last,
      .temperature = sequence.request.temperature,
      .seed = sequence.request.seed,
  });
  sequence.in_step = tokens;
  step_members_.push_back(&sequence);
}

// Decoding sequences first, one token each; then prompts, in chunks, with the rows that are left.
void SchedulerImpl::submit_step() {
  if (step_ticket_) return;
  step_.clear();
  step_members_.clear();
  for (auto& sequence : running_) {
    if (sequence->phase == Phase::kDecode) add_to_step(*sequence, 1);
  }
  size_t rows = options_.chunk_tokens;
  for (auto& sequence : running_) {
    if (sequence->phase != Phase::kPrefill || rows == 0) continue;
    const size_t tokens = std::min(rows, sequence->uncomputed());
    add_to_step(*sequence, tokens);
    rows -= tokens;
  }
  if (step_.empty()) return;
  step_began_us_ = clock_.now_us();
  step_ticket_ = device_.submit(forward_.build(step_));
}

void SchedulerImpl::finish_step(const Status& status) {
  step_ticket_ = Ticket{};
  size_t drawn = 0;
  for (size_t i = 0; i < step_members_.size(); ++i) {
    Sequence& sequence = *step_members_[i];
    const bool has_drawn = status.ok() && step_[i].sample;
    const TokenId id = has_drawn ? forward_.sampled()[drawn++] : -1;
    if (sequence.phase == Phase::kDone) continue;  // cancelled while the step ran
    if (!status.ok()) {
      finish(sequence, FinishReason::kFailed, status);
      continue;
    }
    learn_compute(sequence);
    if (sequence.request.use_cache) cache_.commit(*sequence.chain, step_[i].tokens);
    sequence.computed += sequence.in_step;
    if (sequence.phase == Phase::kPrefill && sequence.request.on_prefill) {
      sequence.request.on_prefill(sequence.computed, sequence.prompt_tokens);
    }
    if (has_drawn) take_drawn(sequence, id);
  }
  drop_done();
}

void SchedulerImpl::take_drawn(Sequence& sequence, TokenId id) {
  const int64_t now_us = clock_.now_us();
  if (sequence.first_token_us == 0) {
    sequence.first_token_us = now_us;
    sequence.outcome.ttft.prefill_us = now_us - sequence.restored_us;
  }
  sequence.outcome.decode_us = now_us - sequence.first_token_us;
  sequence.phase = Phase::kDecode;
  if (is_stop(id)) {
    finish(sequence, FinishReason::kStop, {});
    return;
  }
  sequence.tokens.push_back(id);
  sequence.outcome.token_ids.push_back(id);
  if (sequence.request.on_token) sequence.request.on_token(id);
  if (sequence.tokens.size() >= sequence.limit_tokens) {
    finish(sequence, FinishReason::kLength, {});
  }
}

void SchedulerImpl::finish(Sequence& sequence, FinishReason reason, Status status) {
  if (sequence.chain && sequence.request.use_cache && sequence.phase >= Phase::kPrefill) {
    cache_.commit_tail(*sequence.chain);
  }
  sequence.phase = Phase::kDone;
  sequence.outcome.finish = reason;
  sequence.outcome.status = std::move(status);
  if (sequence.request.on_done) sequence.request.on_done(sequence.outcome);
}

// A sequence that ended while a step with it is in flight keeps its slots until the step's ticket.
void SchedulerImpl::drop_done() {
  if (step_ticket_) return;
  std::erase_if(running_, [](const auto& sequence) { return sequence->phase == Phase::kDone; });
}

}  // namespace

std::unique_ptr<Scheduler> Scheduler::create(Device& device, BlockCache& cache, Forward& forward,
                                             SchedulerOptions options) {
  return std::make_unique<SchedulerImpl>(device, cache, forward, std::move(options));
}

}  // namespace ember
