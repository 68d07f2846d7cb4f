// One walk from the leaves to the roots.
#include "tools/commands/change/removal_plan.h"

namespace ember {

RemovalPlan plan_removal(const BlockTree& tree, const ChosenNode& chosen) {
  std::vector<uint32_t> order;
  order.reserve(tree.nodes().size());
  tree.descend(kNoNode, [&order](uint32_t index, uint32_t) {
    order.push_back(index);
    return true;
  });
  RemovalPlan plan;
  std::vector<bool> needed(tree.nodes().size(), false);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const BlockNode& node = tree.node(*it);
    const bool meant = chosen(*it);
    const bool free = !node.leased && !node.pinned && !needed[*it];
    if (meant && free) {
      plan.going.push_back(*it);
      plan.sums.add(node);
      continue;
    }
    if (node.parent != kNoNode) needed[node.parent] = true;
    if (meant) ++(node.leased ? plan.in_use : node.pinned ? plan.pinned : plan.needed);
  }
  return plan;
}

std::vector<EraseItem> erase_items(const BlockTree& tree, const RemovalPlan& plan,
                                   bool unreachable) {
  std::vector<EraseItem> items;
  items.reserve(plan.going.size());
  for (const uint32_t index : plan.going) {
    const BlockNode& node = tree.node(index);
    items.push_back({.hash = node.hash,
                     .stored_bytes = node.stored_bytes,
                     .position = node.position,
                     .tail = node.tail,
                     .unreachable = unreachable});
  }
  return items;
}

std::vector<bool> unreachable_nodes(const BlockTree& tree) {
  std::vector<bool> unreachable(tree.nodes().size(), false);
  for (const uint32_t root : tree.roots()) {
    if (!tree.node(root).orphan) continue;
    tree.descend(root, [&unreachable](uint32_t index, uint32_t) {
      unreachable[index] = true;
      return true;
    });
  }
  return unreachable;
}

}  // namespace ember
