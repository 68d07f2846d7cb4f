// Scheduler, inside: the queue, the running sequences and the one step in flight.
//
// Journey    scheduler -> [scheduler_impl] -> block_cache, forward
// Owns       the sequences, in both states
// Invariant  a sequence leaves `running_` in tick() only, and never while a step with it is in
//            flight: callbacks may submit and cancel
// Threads    engine thread only
// Not here   plans (admission_plan.h, step_plan.h, restore_plan.h, single_flight.h)
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/runtime/admission_plan.h"
#include "engine/runtime/scheduler.h"
#include "engine/runtime/sequence.h"
#include "engine/runtime/step_plan.h"
#include "engine/runtime/trace.h"

namespace ember {

class SchedulerImpl final : public Scheduler {
 public:
  SchedulerImpl(Device& device, BlockCache& cache, Forward& forward, SchedulerOptions options);
  // The device may still be writing into the slots of a step: its chains outlive the ticket.
  ~SchedulerImpl() override;

  Result<uint64_t> submit(Request request) override;
  bool cancel(uint64_t id) override;
  void cancel_all() override;
  Foresight foresee(TokenSpan prompt, const RequestScope& scope) override {
    const BlockCache::Match match = cache_.match(prompt, scope);
    return {match, plan_restore(prompt.size(), match, costs_, options_.restore)};
  }
  SchedulerLoad load() const override {
    return {running_.size(), queued_.size(), prompt_tokens_, answer_tokens_};
  }
  void watch(Ticket ticket, std::function<void(const Status&)> done) override;
  void watch_for(Ticket ticket, int64_t timeout_us,
                 std::function<void(const Status&)> done) override;
  CostNote costs() const override { return costs_.note(); }
  std::shared_ptr<const TicketOutcome> follow(Ticket ticket) override;
  bool wait_for(const TicketOutcome& outcome, int64_t timeout_us) override;
  bool tick(int64_t deadline_us) override;
  void run_until(const std::function<bool()>& finished) override;

 private:
  using Place = std::unique_ptr<Sequence>;

  struct Watch {
    std::function<void(const Status&)> done;  // empty: was told already that it took too long
    int64_t deadline_us = INT64_MAX;
  };

  // What a tenant has here; gone when it has nothing.
  struct Tenant {
    size_t queued = 0;
    size_t running = 0;
    uint64_t last_turn = 0;
  };

  // --- scheduler.cc
  Status refusal(const Request& request);
  void handle(const Completion& completion);
  void finish(Sequence& sequence, FinishReason reason, Status status);
  void drop_done();
  void give_up_watching();
  void leave(const std::string& tenant, size_t Tenant::*count);
  void record(TraceKind kind, const Sequence& sequence, int64_t begin_us, uint64_t value);

  // --- scheduler_admit.cc
  void admit();
  void make_way();
  bool others_first() const;
  std::optional<size_t> next_queued();
  bool has_work_elsewhere(Sequence& queued, BlockCache::Match& match);
  bool admit_one(Place& place, const BlockCache::Match& match, int64_t start_us);
  bool fits_in_flight(const Sequence& sequence) const;
  RestorePlan plan_for(const Sequence& sequence, const BlockCache::Match& match);
  void prefetch_queued();
  void trace_groups(Sequence& sequence);
  void notice_restored();
  void begin_prefill(Sequence& sequence);
  void learn_restore(const Sequence& sequence);

  // --- scheduler_step.cc
  void submit_step();
  void plan_members();
  void give_way();
  bool step_ahead();
  bool finish_ahead(Sequence& sequence, const Status& status);
  AttentionForm form_of(const Sequence& sequence) const;
  void add_to_step(Sequence& sequence, size_t tokens);
  void finish_step(const Status& status);
  void finish_member(Sequence& sequence, const StepSequence& part, std::optional<TokenId> drawn);
  void take_drawn(Sequence& sequence, TokenId id);
  void learn_compute(const Sequence& sequence);
  void record_step();
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
  std::vector<Place> queued_;  // oldest first
  std::vector<Place> running_;
  std::map<std::string, Tenant> tenants_;
  uint64_t next_id_ = 1;
  uint64_t turns_ = 0;        // admissions so far
  size_t tokens_in_flight_ = 0;  // that the running ones may come to
  uint64_t prompt_tokens_ = 0;   // computed so far
  uint64_t answer_tokens_ = 0;   // drawn so far
  bool room_may_be_ = true;   // false: the last try found no slots, and nothing has changed since
  std::unordered_map<Ticket, Watch> watched_;

  Ticket step_ticket_;
  uint64_t steps_ = 0;
  int64_t step_began_us_ = 0;
  std::vector<StepSequence> step_;
  std::vector<Sequence*> step_members_;
  std::vector<StepCandidate> candidates_;
  std::vector<size_t> step_tokens_;
  std::vector<Ticket> layer_waits_;
  Sequence* ahead_ = nullptr;  // the one member of a step that waits for its layers
  std::array<Completion, 64> completions_;
};

}  // namespace ember
