// Choosing blocks and epochs.
#include "tools/commands/change/gc_plan.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace ember {

std::vector<bool> foreign_nodes(const BlockTree& tree, const FactsByHash& facts) {
  struct Latest {
    int64_t used_unix_us = -1;
    uint64_t build = 0;
  };
  std::map<uint16_t, Latest> latest;  // by namespace
  for (const BlockNode& node : tree.nodes()) {
    const auto found = facts.find(node.hash);
    Latest& known = latest[node.name_space];
    if (found == facts.end() || node.last_use_unix_us <= known.used_unix_us) continue;
    known = {node.last_use_unix_us, found->second.numerics_build};
  }
  std::vector<bool> foreign(tree.nodes().size(), false);
  for (size_t i = 0; i < foreign.size(); ++i) {
    const BlockNode& node = tree.nodes()[i];
    const auto found = facts.find(node.hash);
    foreign[i] = found != facts.end() &&
                 found->second.numerics_build != latest[node.name_space].build;
  }
  return foreign;
}

void choose_oldest(const BlockTree& tree, uint64_t bytes, std::vector<bool>& chosen) {
  const auto goes_along = [](const BlockNode& node) {
    return node.tail && !node.pinned && !node.leased;
  };
  const auto room_of = [](const BlockNode& node) {
    return node.tail || node.damaged ? 0 : node.stored_bytes;
  };
  std::vector<uint32_t> children(tree.nodes().size(), 0);  // for whose sake it stays
  uint64_t sum = 0;
  for (uint32_t i = 0; i < children.size(); ++i) {
    const BlockNode& node = tree.node(i);
    if (chosen[i]) sum += room_of(node);
    if (!chosen[i] && node.parent != kNoNode && !goes_along(node)) ++children[node.parent];
  }
  // The oldest first; of one age the deepest.
  using Leaf = std::tuple<int64_t, int64_t, uint32_t>;
  std::priority_queue<Leaf, std::vector<Leaf>, std::greater<>> leaves;
  const auto add = [&](uint32_t index) {
    const BlockNode& node = tree.node(index);
    const bool stays = node.tail || node.pinned || node.leased;
    if (children[index] > 0 || chosen[index] || stays) return;
    leaves.emplace(node.last_use_unix_us, -int64_t{node.position}, index);
  };
  for (uint32_t i = 0; i < children.size(); ++i) add(i);
  while (sum < bytes && !leaves.empty()) {
    const uint32_t index = std::get<2>(leaves.top());
    leaves.pop();
    chosen[index] = true;
    const BlockNode& node = tree.node(index);
    sum += room_of(node);
    for (uint32_t i = node.first_child; i != kNoNode; i = tree.node(i).next_sibling) {
      chosen[i] = true;  // its tails; it has no other children that stay
    }
    const uint32_t parent = node.parent;
    if (parent != kNoNode && --children[parent] == 0) add(parent);
  }
}

std::vector<EpochChoice> choose_epochs(const std::vector<DiskTier::EpochUse>& epochs,
                                       const BlockTree& tree, const RemovalPlan& plan,
                                       const FactsByHash& facts, double least_dead_share,
                                       uint64_t within_limit) {
  std::unordered_map<uint32_t, uint64_t> going;
  for (const uint32_t index : plan.going) {
    const auto found = facts.find(tree.node(index).hash);
    if (found != facts.end()) going[found->second.epoch] += tree.node(index).stored_bytes;
  }
  std::vector<std::pair<double, EpochChoice>> all;
  uint64_t payload = 0;
  for (const DiskTier::EpochUse& epoch : epochs) {
    const uint64_t live = epoch.live_bytes - std::min(epoch.live_bytes, going[epoch.epoch]);
    const uint64_t bytes = std::max(epoch.bytes, epoch.live_bytes);
    payload += bytes;
    const double share = bytes == 0 ? 1.0 : static_cast<double>(bytes - live) /
                                                static_cast<double>(bytes);
    if (bytes > live || bytes == 0) all.push_back({share, {epoch.epoch, bytes - live, live}});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<EpochChoice> chosen;
  for (const auto& [share, epoch] : all) {
    if (share < least_dead_share && payload <= within_limit) break;
    chosen.push_back(epoch);
    payload -= epoch.dead_bytes;
  }
  return chosen;
}

}  // namespace ember
