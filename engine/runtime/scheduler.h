// Scheduler: the engine thread's loop. Admits requests, restores, cuts prompts in chunks, decodes.
//
// Journey    request -> [scheduler] -> block_cache (restore) -> forward (steps) -> block_cache
//            (commit)
// Owns       the running sequences and the one step in flight
// Invariant  never computes and never waits for one ticket: it sleeps in Device::wait_any only;
//            every request ends in exactly one on_done; a prefix that one request is computing is
//            computed by no second one (engine/runtime/single_flight.h); a decoding request has its
//            token in every step, so that a restore or a prompt's chunk delays it by one at most;
//            what runs in the background delays a request by the step under way at most
// Threads    engine thread only
// Not here   whether a hit pays (engine/runtime/restore_plan.h), conversations (chat_session.h)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "engine/model/attention_mode.h"
#include "engine/model/forward.h"
#include "engine/runtime/request.h"
#include "engine/runtime/restore_plan.h"
#include "kernels/device.h"
#include "store/block_cache.h"

namespace ember {

class Trace;

// How much is taken on at once. What passes the limits of the queue is refused with kBusy; what
// passes the others waits in the queue.
struct SchedulerLimits {
  size_t max_running = 8;  // requests that have device slots: the most in a step
  size_t max_running_per_tenant = 0;  // 0: no limit but max_running
  // Prompts and longest answers of the running ones together; a single request may pass it. 0: what
  // the device slots hold.
  size_t max_tokens_in_flight = 0;
  size_t max_queued = 64;
  size_t max_queued_per_tenant = 0;  // 0: three quarters of max_queued
};
inline constexpr size_t kMostRunning = 1024;
inline constexpr size_t kMostQueued = 65'536;
inline constexpr size_t kMostChunkTokens = 65'536;
// Errors: kInvalidArgument, naming what could never work, and what is expected of it.
Status check_limits(const SchedulerLimits& limits, size_t chunk_tokens);

struct SchedulerOptions {
  size_t chunk_tokens = 256;  // most prompt tokens in a step, of all sequences together
  SchedulerLimits limits;
  size_t context_tokens = 0;  // prompt and answer together
  std::vector<uint32_t> stop_ids;
  RestorePolicy restore = RestorePolicy::kByCost;
  CostPrior costs = {};
  AttentionMode attention = AttentionMode::kAbsorb;  // kAuto: the forward pass has both forms
  Trace* trace = nullptr;  // not null: what happens is recorded there
  const Clock* clock = nullptr;  // null: the system's
};

// What would become of a prompt if it were asked now.
struct Foresight {
  BlockCache::Match match;  // looking_up: ask again
  RestorePlan plan;
};

// What became of a ticket; shared with the scheduler, which may report after the reader gave up.
struct TicketOutcome {
  bool reported = false;
  Status status;
};

// What is under way, and what the steps have computed since the scheduler was made.
struct SchedulerLoad {
  size_t running = 0;
  size_t queued = 0;
  uint64_t prompt_tokens = 0;
  uint64_t answer_tokens = 0;
};

class Scheduler {
 public:
  static std::unique_ptr<Scheduler> create(Device& device, BlockCache& cache, Forward& forward,
                                           SchedulerOptions options);
  virtual ~Scheduler() = default;

  // Errors: kInvalidArgument (an empty prompt, a token outside the vocabulary is the caller's; a
  // prompt that leaves no room for one token in the context: both lengths are named); kBusy (the
  // queue, or the tenant's share of it, is full).
  // Returns the request's number, from 1.
  virtual Result<uint64_t> submit(Request request) = 0;
  // Ends a request that waits or runs: it gets its on_done with kCancelled at once; its slots come
  // free when the step in flight has ended. False: there is no such request (any more).
  // Both may be called from a request's callbacks.
  virtual bool cancel(uint64_t id) = 0;
  virtual void cancel_all() = 0;
  virtual SchedulerLoad load() const = 0;

  // Changes nothing. Cost: that of BlockCache::match.
  virtual Foresight foresee(TokenSpan prompt, const RequestScope& scope) = 0;

  // Calls `done` once with the ticket's status, from tick(). For tickets of the caller's own.
  virtual void watch(Ticket ticket, std::function<void(const Status&)> done) = 0;
  // The same for at most `timeout_us`: then `done` gets kBusy, and what comes later is passed over.
  virtual void watch_for(Ticket ticket, int64_t timeout_us,
                         std::function<void(const Status&)> done) = 0;

  // What computing and restoring took so far, for the next process.
  virtual CostNote costs() const = 0;

  virtual std::shared_ptr<const TicketOutcome> follow(Ticket ticket) = 0;
  // Ticks until the ticket is reported; false when `timeout_us` passed first.
  virtual bool wait_for(const TicketOutcome& outcome, int64_t timeout_us) = 0;

  // One turn of the loop: waits at most until `deadline_us` for something to happen, then handles,
  // plans and submits. Returns true while any request, watched ticket or cache work is left.
  virtual bool tick(int64_t deadline_us) = 0;
  // Ticks until `finished` holds.
  virtual void run_until(const std::function<bool()>& finished) = 0;
};

}  // namespace ember
