// The choice of an epoch by the coldest part of it, and of that part.
#include "store/cache/retire_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ember {
namespace {

// What is live of an epoch beyond what may be when it is retired.
double excess_bytes(uint64_t bytes, uint64_t live_bytes) {
  return static_cast<double>(live_bytes) - (1 - kRetiredDeadShare) * static_cast<double>(bytes);
}

double live_share(const EpochView& epoch) {
  return static_cast<double>(epoch.live_bytes) /
         static_cast<double>(std::max<uint64_t>(1, epoch.bytes));
}

// The hottest of those that have to go, as the sample tells; nothing when one of them may not.
std::optional<EvictionOrder> hottest_to_go(const EpochView& epoch) {
  std::vector<EvictionOrder> sample;
  for (const std::optional<EvictionOrder>& order : epoch.sample) {
    if (order) sample.push_back(*order);
  }
  const double part = excess_bytes(epoch.bytes, epoch.live_bytes) /
                      static_cast<double>(std::max<uint64_t>(1, epoch.live_bytes));
  const double needed = std::ceil(part * static_cast<double>(epoch.sample.size()));
  if (needed < 1 || needed > static_cast<double>(sample.size())) return std::nullopt;
  const auto last = sample.begin() + static_cast<std::ptrdiff_t>(needed) - 1;
  std::nth_element(sample.begin(), last, sample.end());
  return *last;
}

// The last of the first kColdShare of all live bytes. Each sampled block stands for its part of
// what is live in its epoch.
std::optional<EvictionOrder> cold_limit(std::span<const EpochView> epochs) {
  std::vector<std::pair<EvictionOrder, double>> blocks;
  double left = 0;
  for (const EpochView& epoch : epochs) {
    if (epoch.sample.empty()) continue;
    left += kColdShare * static_cast<double>(epoch.live_bytes);
    const double weight =
        static_cast<double>(epoch.live_bytes) / static_cast<double>(epoch.sample.size());
    for (const std::optional<EvictionOrder>& order : epoch.sample) {
      if (order) blocks.emplace_back(*order, weight);
    }
  }
  std::sort(blocks.begin(), blocks.end());
  std::optional<EvictionOrder> limit;
  for (const auto& [order, weight] : blocks) {
    left -= weight;
    if (left < 0) break;
    limit = order;
  }
  return limit;
}

}  // namespace

std::optional<RetireChoice> choose_epoch(std::span<const EpochView> epochs) {
  std::optional<RetireChoice> chosen;
  std::pair<EvictionOrder, double> least;
  for (size_t i = 0; i < epochs.size(); ++i) {
    EvictionOrder hottest{EvictionRank::kBelowHole, 0};  // before any block
    if (excess_bytes(epochs[i].bytes, epochs[i].live_bytes) > 0) {
      const std::optional<EvictionOrder> found = hottest_to_go(epochs[i]);
      if (!found) continue;
      hottest = *found;
    }
    const std::pair<EvictionOrder, double> needs{hottest, live_share(epochs[i])};
    if (chosen && needs >= least) continue;
    chosen = RetireChoice{i, std::nullopt};
    least = needs;
  }
  if (chosen) chosen->cold = cold_limit(epochs);
  return chosen;
}

GiveUp plan_give_up(std::span<const EpochBlock> blocks, uint64_t bytes,
                    const std::optional<EvictionOrder>& cold) {
  GiveUp plan;
  uint64_t live_bytes = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    live_bytes += blocks[i].stored_bytes;
    if (blocks[i].order) plan.order.push_back(i);
  }
  std::sort(plan.order.begin(), plan.order.end(), [&](size_t a, size_t b) {
    return std::pair(*blocks[a].order, a) < std::pair(*blocks[b].order, b);
  });
  while (cold && plan.cold < plan.order.size() &&
         *blocks[plan.order[plan.cold]].order <= *cold) {
    ++plan.cold;
  }
  plan.bytes = static_cast<uint64_t>(std::ceil(std::max(0.0, excess_bytes(bytes, live_bytes))));
  return plan;
}

}  // namespace ember
