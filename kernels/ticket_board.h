// Ticket board: which tickets are pending, and the one queue of completed ones.
//
// Journey    a device's workers -> [ticket_board] -> wait_any, and programs that wait
// Owns       the ticket numbers
// Invariant  a ticket completes once and is taken once; steady use allocates nothing
// Threads    any
// Not here   the work itself (compute_team.h, host_pool.h, sim_device.cc)
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "kernels/device.h"
#include "kernels/event_word.h"
#include "kernels/ring.h"

namespace ember {

class TicketBoard {
 public:
  Ticket open(bool external) EMBER_EXCLUDES(mutex_);
  void complete(Ticket ticket, Status status) EMBER_EXCLUDES(mutex_);
  // Completes an external ticket; any other is misuse.
  void post(Ticket ticket, Status status) EMBER_EXCLUDES(mutex_);

  // Moves completed tickets, oldest first, into `out`.
  size_t take(std::span<Completion> out) EMBER_EXCLUDES(mutex_);
  // The same; waits for one until `deadline_us` of the system clock.
  size_t wait(int64_t deadline_us, std::span<Completion> out) EMBER_EXCLUDES(mutex_);
  // How the ticket ended, or nothing while it is pending. The last 4,096 failures are remembered;
  // whoever waits for a ticket asks long before so many more have failed.
  std::optional<Status> outcome(Ticket ticket) EMBER_EXCLUDES(mutex_);
  // Waits for the outcome; kCancelled once the board is closed.
  Status wait_for(Ticket ticket) EMBER_EXCLUDES(mutex_);

  size_t completed() EMBER_EXCLUDES(mutex_);    // and not yet taken
  size_t outstanding() EMBER_EXCLUDES(mutex_);  // not yet taken, external ones not counted
  // Ends all waits for tickets that are still pending: their device goes away.
  void close() EMBER_EXCLUDES(mutex_);

 private:
  struct Pending {
    uint64_t id = 0;
    bool external = false;
  };
  struct Done {
    Completion completion;
    bool external = false;
  };
  void finish(Ticket ticket, Status status, bool only_external) EMBER_EXCLUDES(mutex_);
  void remember_failure(const Completion& failed) EMBER_REQUIRES(mutex_);

  Mutex mutex_;
  EventWord changed_;
  uint64_t next_id_ EMBER_GUARDED_BY(mutex_) = 1;
  std::vector<Pending> pending_ EMBER_GUARDED_BY(mutex_);
  Ring<Done> done_ EMBER_GUARDED_BY(mutex_);
  Ring<Completion> failures_ EMBER_GUARDED_BY(mutex_);
  size_t outstanding_ EMBER_GUARDED_BY(mutex_) = 0;
  bool closed_ EMBER_GUARDED_BY(mutex_) = false;
};

}  // namespace ember
