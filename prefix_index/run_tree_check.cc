// Run tree: the check of its invariants, for tests.
#include "base/check.h"
#include "prefix_index/run_tree.h"
#include "prefix_index/token_run.h"

namespace ember {

void RunTree::check_invariants() const {
  size_t nodes = 0;
  size_t bytes = 0;
  std::vector<NodeId> open = checked_roots();
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    ++nodes;
    bytes += at(node).counted_bytes;
    check_node(node);
    check_children(node);
    open.insert(open.end(), at(node).children.begin(), at(node).children.end());
  }
  EMBER_CHECK(nodes == nodes_.size(), "every node is reached from a root");
  EMBER_CHECK(bytes == heap_bytes_, "the bytes of the runs are counted");
}

std::vector<NodeId> RunTree::checked_roots() const {
  std::vector<NodeId> all;
  const auto check = [&](NodeId root, ScopeId scope, BlockId after) {
    EMBER_CHECK(at(root).parent == kNoNode, "a root has no parent");
    EMBER_CHECK(at(root).scope == scope && at(root).after == after, "a root knows its place");
    EMBER_CHECK(at(root).blocks.empty() && at(root).tokens.empty(), "a root has no run");
    EMBER_CHECK(!at(root).children.empty(), "a root without blocks is gone");
    all.push_back(root);
  };
  for (size_t number = 0; number < scopes_.size(); ++number) {
    const ScopeId scope{static_cast<uint32_t>(number)};
    const ScopeRoots& roots = scopes_[number];
    if (roots.first != kNoNode) check(roots.first, scope, kNoBlock);
    for (const auto& [after, root] : roots.branches) {
      check(root, scope, after);
      EMBER_CHECK(scope != kSharedScope && this->scope(after) == kSharedScope,
                  "a tenant's blocks hang under shared ones, and nothing else crosses scopes");
      EMBER_CHECK(blocks_.entry(after).token_count == span_, "nothing hangs under a tail");
    }
  }
  return all;
}

void RunTree::check_node(NodeId node_id) const {
  const Node& node = at(node_id);
  EMBER_CHECK(node.counted_bytes >= node.tokens.size() * sizeof(TokenId), "a run's bytes count");
  if (node.parent == kNoNode) return;
  EMBER_CHECK(!node.blocks.empty(), "a run has blocks");
  const Node& parent = at(node.parent);
  EMBER_CHECK(node.scope == parent.scope, "a tree is of one scope");
  BlockId before = parent.blocks.empty() ? parent.after : parent.blocks.back();
  uint32_t position = before == kNoBlock ? 0 : blocks_.entry(before).position + 1;
  EMBER_CHECK(node.first_position == position, "a run begins where its parent's ends");
  size_t tokens = 0;
  for (BlockId block : node.blocks) {
    const BlockEntry& entry = blocks_.entry(block);
    EMBER_CHECK(blocks_.node(block) == node_id, "a block knows its node");
    EMBER_CHECK(entry.parent == before && entry.position == position, "a run is a chain");
    EMBER_CHECK(entry.token_count >= 1 && entry.token_count <= span_, "a block has its tokens");
    const bool alone = node.blocks.size() == 1 && node.children.empty();
    EMBER_CHECK(entry.token_count == span_ || alone, "a tail is a run of its own");
    tokens += entry.token_count;
    before = block;
    ++position;
  }
  EMBER_CHECK(tokens == node.tokens.size(), "a run holds its blocks' tokens");
}

void RunTree::check_children(NodeId node_id) const {
  const Node& node = at(node_id);
  for (size_t i = 0; i < node.children.size(); ++i) {
    const NodeId child = node.children[i];
    EMBER_CHECK(at(child).parent == node_id, "a child knows its parent");
    if (i == 0) continue;
    EMBER_CHECK(!not_after(first_tokens(child), first_tokens(node.children[i - 1])),
                "children are in token order and differ");
  }
  if (node.parent == kNoNode || node.children.size() != 1) return;
  EMBER_CHECK(first_tokens(node.children.front()).size() < span_,
              "a single child that could go on in the run is part of it");
}

}  // namespace ember
