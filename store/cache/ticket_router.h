// Ticket router: what is done when a ticket of the cache completes.
//
// Journey    restore, offload -> [ticket_router] <- BlockCache::handle
// Owns       one continuation for each ticket of the cache that is under way
// Invariant  a continuation runs once, on the engine thread; what a ticket's work touches stays
//            alive until then
// Threads    engine thread only
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "kernels/device.h"

namespace ember {

class TicketRouter {
 public:
  using Then = std::function<void(const Status&)>;

  void on(Ticket ticket, Then then) {
    EMBER_CHECK(ticket && waiting_.emplace(ticket, std::move(then)).second,
                "a ticket is watched twice");
  }
  // False: not one of the cache's.
  bool complete(const Completion& completion) {
    const auto found = waiting_.find(completion.ticket);
    if (found == waiting_.end()) return false;
    const Then then = std::move(found->second);
    waiting_.erase(found);
    then(completion.status);
    return true;
  }
  size_t waiting() const { return waiting_.size(); }

 private:
  std::unordered_map<Ticket, Then> waiting_;
};

}  // namespace ember
