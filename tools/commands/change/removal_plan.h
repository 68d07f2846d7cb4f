// Removal plan: which of the blocks that one asks for can go, and what stays for whose sake. Pure.
//
// Journey    block_tree -> [removal_plan] -> rm, gc, repair -> store_editor
// Invariant  a block goes only with all that hangs under it; nothing goes that was not chosen; what
//            a pin or a running request keeps stays, and so does what it hangs on
// Threads    any
// Not here   the erasing (store/store_editor.h), where a running process looks once more
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "store/live_edits.h"
#include "tools/commands/look/block_tree.h"

namespace ember {

struct RemovalPlan {
  std::vector<uint32_t> going;  // nodes, children before their parents
  BlockTree::Sums sums;         // of these
  // Chosen, and staying:
  uint64_t pinned = 0;
  uint64_t in_use = 0;
  uint64_t needed = 0;  // something hangs on it that stays

  uint64_t stayed() const { return pinned + in_use + needed; }
};

using ChosenNode = std::function<bool(uint32_t index)>;
RemovalPlan plan_removal(const BlockTree& tree, const ChosenNode& chosen);

// For the editor. `unreachable`: each goes only while nothing reaches it.
std::vector<EraseItem> erase_items(const BlockTree& tree, const RemovalPlan& plan,
                                   bool unreachable = false);

// Nodes that no chain of the store reaches: those whose parent is not there, and all below them.
std::vector<bool> unreachable_nodes(const BlockTree& tree);

}  // namespace ember
