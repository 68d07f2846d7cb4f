// What follows from the requests of a trace.
#include "store/replay/trace.h"

#include <algorithm>
#include <cmath>

#include "base/prng.h"

namespace ember::replay {

size_t BlockNumbering::hash(BlockNumber before, uint64_t id) {
  return mix64(id ^ (uint64_t{before} << 32));
}

void finish(Trace& trace, const BlockNumbering& numbering) {
  trace.before = numbering.before();
  for (const Request& request : trace.requests) {
    trace.references += request.looked_up;
    trace.prompt_tokens += request.prompt_tokens;
    trace.longest = std::max<size_t>(trace.longest, request.blocks);
  }
}

uint64_t capacity_of(const Trace& trace, double percent) {
  const auto blocks =
      static_cast<uint64_t>(std::llround(static_cast<double>(trace.blocks()) * percent / 100));
  return std::max<uint64_t>(1, blocks);
}

}  // namespace ember::replay
