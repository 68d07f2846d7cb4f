// Ticket board: pending tickets in a small unordered list, completed ones in a ring.
#include "kernels/ticket_board.h"

#include <algorithm>

#include "base/clock.h"

namespace ember {
namespace {

constexpr size_t kFailuresKept = 4096;

}  // namespace

Ticket TicketBoard::open(bool external) {
  MutexLock lock(mutex_);
  const uint64_t id = next_id_++;
  pending_.push_back(Pending{id, external});
  if (!external) ++outstanding_;
  return Ticket{id};
}

void TicketBoard::remember_failure(const Completion& failed) {
  if (failures_.size() == kFailuresKept) failures_.pop();
  failures_.push(failed);
}

void TicketBoard::finish(Ticket ticket, Status status, bool only_external) {
  {
    MutexLock lock(mutex_);
    const auto found = std::find_if(pending_.begin(), pending_.end(),
                                    [&](const Pending& p) { return p.id == ticket.id; });
    EMBER_CHECK(found != pending_.end(), "a ticket completes once");
    EMBER_CHECK(found->external || !only_external, "only external tickets are posted");
    Done done{Completion{ticket, std::move(status)}, found->external};
    *found = pending_.back();
    pending_.pop_back();
    if (!done.completion.status.ok()) remember_failure(done.completion);
    done_.push(std::move(done));
  }
  changed_.advance();
}

void TicketBoard::complete(Ticket ticket, Status status) {
  finish(ticket, std::move(status), false);
}

void TicketBoard::post(Ticket ticket, Status status) { finish(ticket, std::move(status), true); }

size_t TicketBoard::take(std::span<Completion> out) {
  MutexLock lock(mutex_);
  size_t count = 0;
  while (count < out.size() && !done_.empty()) {
    Done done = done_.pop();
    if (!done.external) --outstanding_;
    out[count++] = std::move(done.completion);
  }
  return count;
}

size_t TicketBoard::wait(int64_t deadline_us, std::span<Completion> out) {
  EMBER_CHECK(!out.empty(), "room for at least one completion");
  while (true) {
    const uint32_t seen = changed_.value();
    const size_t count = take(out);
    if (count > 0) return count;
    const int64_t now = system_clock().now_us();
    if (now >= deadline_us) return 0;
    changed_.wait(seen, 0, deadline_us - now);
  }
}

std::optional<Status> TicketBoard::outcome(Ticket ticket) {
  MutexLock lock(mutex_);
  EMBER_CHECK(ticket.id != 0 && ticket.id < next_id_, "no such ticket was given out");
  for (const Pending& pending : pending_) {
    if (pending.id == ticket.id) return std::nullopt;
  }
  const Completion* failed =
      failures_.find([&](const Completion& c) { return c.ticket == ticket; });
  return failed == nullptr ? Status{} : failed->status;
}

Status TicketBoard::wait_for(Ticket ticket) {
  while (true) {
    const uint32_t seen = changed_.value();
    if (std::optional<Status> ended = outcome(ticket)) return *std::move(ended);
    {
      MutexLock lock(mutex_);
      if (closed_) return {ErrorCode::kCancelled, "the device was closed while a program waited"};
    }
    changed_.wait(seen, 200, -1);
  }
}

size_t TicketBoard::completed() {
  MutexLock lock(mutex_);
  return done_.size();
}

size_t TicketBoard::outstanding() {
  MutexLock lock(mutex_);
  return outstanding_;
}

void TicketBoard::close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.advance();
}

}  // namespace ember
