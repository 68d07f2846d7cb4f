// Ticket: the name of one piece of work that a device was given.
//
// Journey    device -> [ticket] -> whoever waits for it
// Invariant  ids are never used twice by a device; 0 is no ticket
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace ember {

struct Ticket {
  uint64_t id = 0;
  explicit operator bool() const { return id != 0; }
  friend auto operator<=>(Ticket, Ticket) = default;
};

}  // namespace ember

template <>
struct std::hash<ember::Ticket> {
  size_t operator()(ember::Ticket ticket) const noexcept { return ticket.id; }
};
