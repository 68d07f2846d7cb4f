// Steps: what goes into one, and what comes of it.
#include <optional>
#include <utility>

#include "engine/runtime/scheduler_impl.h"

namespace ember {

// Of prompt tokens that are still to be computed the restore may leave more than was expected; a
// step ahead goes by what is expected.
AttentionForm SchedulerImpl::form_of(const Sequence& sequence) const {
  const size_t computed = sequence.ahead ? sequence.prompt_tokens - sequence.computed
                                         : sequence.outcome.computed_tokens;
  return attention_form(options_.attention, computed, sequence.phase == Phase::kDecode);
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
      .form = form_of(sequence),
  });
  sequence.in_step = tokens;
  step_members_.push_back(&sequence);
}

void SchedulerImpl::plan_members() {
  step_.clear();
  step_members_.clear();
  candidates_.clear();
  for (const Place& sequence : running_) {
    const bool ready = sequence->phase == Phase::kPrefill || sequence->phase == Phase::kDecode;
    candidates_.push_back({sequence->request.scope.tenant, ready ? sequence->uncomputed() : 0,
                           sequence->phase == Phase::kDecode});
  }
  plan_step(candidates_, options_.chunk_tokens, step_tokens_);
  // The forward pass wants the absorbed form first.
  for (const AttentionForm form : {AttentionForm::kAbsorb, AttentionForm::kNaive}) {
    for (size_t i = 0; i < running_.size(); ++i) {
      if (step_tokens_[i] == 0 || form_of(*running_[i]) != form) continue;
      add_to_step(*running_[i], step_tokens_[i]);
    }
  }
}

void SchedulerImpl::submit_step() {
  if (step_ticket_) return give_way();
  plan_members();
  layer_waits_.clear();
  if (step_.empty() && !step_ahead()) return;
  ++steps_;
  step_began_us_ = clock_.now_us();
  step_ticket_ = device_.submit(forward_.build(step_, layer_waits_));
}

// Where nobody else has anything to compute, a request begins when its first layers are there, and
// each layer waits for its own.
bool SchedulerImpl::step_ahead() {
  for (const Place& sequence : running_) {
    if (sequence->phase != Phase::kRestoring || sequence->chain->ready()) continue;
    if (sequence->chain->readable_groups() == 0) continue;
    const std::span<const Ticket> groups = sequence->chain->begin_step();
    const KvLayout& layout = cache_.layout();
    layer_waits_.assign(layout.layers(), Ticket{});
    for (uint32_t g = 0; g < layout.group_count(); ++g) {
      layer_waits_[layout.group(g).first_layer] = groups[g];
    }
    sequence->ahead = true;
    sequence->computed = sequence->chain->expected_length();
    ahead_ = sequence.get();
    add_to_step(*sequence, std::min(options_.chunk_tokens, sequence->uncomputed()));
    return true;
  }
  return false;
}

// A step that waits for its layers ends when another request has something to compute.
void SchedulerImpl::give_way() {
  if (ahead_ == nullptr) return;
  for (const Place& sequence : running_) {
    if (sequence->phase != Phase::kPrefill && sequence->phase != Phase::kDecode) continue;
    ahead_->chain->give_way();
    return;
  }
}

void SchedulerImpl::finish_step(const Status& status) {
  step_ticket_ = Ticket{};
  record_step();
  Sequence* const ahead = std::exchange(ahead_, nullptr);
  if (ahead != nullptr && !finish_ahead(*ahead, status)) return;
  size_t drawn = 0;
  for (size_t i = 0; i < step_members_.size(); ++i) {
    Sequence& sequence = *step_members_[i];
    std::optional<TokenId> id;
    if (status.ok() && step_[i].sample) id = forward_.sampled()[drawn++];
    if (sequence.phase == Phase::kDone) continue;  // cancelled while the step ran
    if (status.ok()) {
      finish_member(sequence, step_[i], id);
    } else {
      finish(sequence, FinishReason::kFailed, status);
    }
  }
}

// Whether the step counts. Where a layer did not come it does not: the request computes what is
// missing when its restore has ended, over rows that nobody has read.
bool SchedulerImpl::finish_ahead(Sequence& sequence, const Status& status) {
  const size_t expected = sequence.computed;
  sequence.ahead = false;
  sequence.chain->end_step();
  if (sequence.phase == Phase::kDone) return true;
  sequence.computed = 0;
  trace_groups(sequence);
  if (!sequence.chain->ready()) return false;
  begin_prefill(sequence);
  return status.ok() ? sequence.computed == expected
                     : status.error().code != ErrorCode::kCancelled;
}

void SchedulerImpl::finish_member(Sequence& sequence, const StepSequence& part,
                                  std::optional<TokenId> drawn) {
  if (layer_waits_.empty()) learn_compute(sequence);
  if (sequence.request.use_cache) cache_.commit(*sequence.chain, part.tokens);
  sequence.computed += sequence.in_step;
  if (sequence.phase == Phase::kPrefill) prompt_tokens_ += sequence.in_step;
  if (sequence.phase == Phase::kPrefill && sequence.request.on_prefill) {
    sequence.request.on_prefill(sequence.computed, sequence.prompt_tokens);
    if (sequence.phase == Phase::kDone) return;  // the caller cancelled it
  }
  if (drawn) take_drawn(sequence, *drawn);
}

void SchedulerImpl::take_drawn(Sequence& sequence, TokenId id) {
  const int64_t now_us = clock_.now_us();
  ++answer_tokens_;
  if (sequence.first_token_us == 0) {
    sequence.first_token_us = now_us;
    sequence.outcome.ttft.prefill_us = now_us - sequence.restored_us;
    record(TraceKind::kPrefill, sequence, sequence.restored_us, sequence.outcome.computed_tokens);
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
  if (sequence.phase == Phase::kDone) return;  // the caller cancelled it
  if (sequence.tokens.size() >= sequence.limit_tokens) {
    finish(sequence, FinishReason::kLength, {});
  }
}

// From steps that one prompt has nearly for itself. What warms up, cold as everything is then, is
// better than a guess, and worse than what was learned before.
void SchedulerImpl::learn_compute(const Sequence& sequence) {
  const size_t others = step_members_.size() - 1;
  if (!sequence.request.use_cache && options_.costs.learned) return;
  if (sequence.phase != Phase::kPrefill || 8 * others > sequence.in_step) return;
  costs_.saw_compute(sequence.in_step, sequence.computed, clock_.now_us() - step_began_us_);
}

void SchedulerImpl::record_step() {
  if (options_.trace == nullptr) return;
  size_t tokens = 0;
  for (const StepSequence& part : step_) tokens += part.tokens.size();
  const std::span<const int64_t> times = forward_.layer_times_us();
  for (size_t layer = 0; layer + 1 < times.size() && times[layer + 1] != 0; ++layer) {
    options_.trace->add(
        {TraceKind::kLayer, times[layer], times[layer + 1], steps_, uint64_t{layer}});
  }
  options_.trace->add({TraceKind::kStep, step_began_us_, clock_.now_us(), steps_, tokens});
}

}  // namespace ember
