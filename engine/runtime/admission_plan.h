// Admission plan: which of the waiting requests is the next to run, and which are refused. Pure.
//
// Journey    queued requests -> [admission_plan] -> scheduler (device slots)
// Invariant  the tenant with the fewest running requests is next, and among equals the one that
//            was served longest ago; within a tenant, and for a single user, the order of arrival.
//            A request that found no room is passed by nobody
// Not here   rows of a step (engine/runtime/step_plan.h), whether there is room (the scheduler)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ember {

// One waiting request, with what its tenant has now. These come oldest first.
struct Waiting {
  bool found_no_room = false;
  bool set_aside = false;         // it has nothing to do yet: what it needs is being computed
  size_t tenant_running = 0;
  uint64_t tenant_last_turn = 0;  // grows with each admission; 0: none yet
};

// The index of the next one; nothing when all are set aside or their tenants run
// `running_per_tenant` (0: no limit).
std::optional<size_t> next_to_admit(std::span<const Waiting> waiting, size_t running_per_tenant);

// Waiting requests that one tenant may have where all may have `max_queued`: three quarters, so
// that a flood of one leaves room for others.
constexpr size_t queue_share(size_t max_queued) { return max_queued - max_queued / 4; }

}  // namespace ember
