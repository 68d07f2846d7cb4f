// The order of admission.
#include "engine/runtime/admission_plan.h"

#include <tuple>

namespace ember {

std::optional<size_t> next_to_admit(std::span<const Waiting> waiting, size_t running_per_tenant) {
  std::optional<size_t> best;
  const auto rank = [&](size_t i) {
    return std::tuple(waiting[i].found_no_room ? 0 : 1, waiting[i].tenant_running,
                      waiting[i].tenant_last_turn);
  };
  for (size_t i = 0; i < waiting.size(); ++i) {
    const bool at_limit =
        running_per_tenant > 0 && waiting[i].tenant_running >= running_per_tenant;
    if (waiting[i].set_aside || at_limit) continue;
    if (!best || rank(i) < rank(*best)) best = i;
  }
  return best;
}

}  // namespace ember
