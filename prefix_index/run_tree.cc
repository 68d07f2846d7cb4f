// Run tree: find, add with split, remove with join. No recursion: a chain may be of any length.
#include "prefix_index/run_tree.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "prefix_index/token_run.h"

namespace ember {
namespace {

// What a run may hold in vain after it became shorter. Removal allows more: a run that loses and
// gains a block in turn must not move each time.
constexpr size_t kSlackAfterSplit = 2;
constexpr size_t kSlackAfterRemoval = 4;

template <typename T>
void trim(std::vector<T>& values, size_t slack) {
  if (values.capacity() > slack * values.size()) values.shrink_to_fit();
}

// Room for `more` values at a 16th in vain: a run grows to thousands of tokens, a block at a time.
template <typename T>
void reserve_for(std::vector<T>& values, size_t more) {
  const size_t needed = values.size() + more;
  if (needed > values.capacity()) values.reserve(needed + values.size() / 16);
}

}  // namespace

RunPoint RunTree::root_point(ScopeId scope, BlockId after) const {
  const auto number = static_cast<size_t>(scope);
  if (number >= scopes_.size()) return {};
  const ScopeRoots& roots = scopes_[number];
  if (after == kNoBlock) return {roots.first, 0};
  const auto found = roots.branches.find(after);
  return found == roots.branches.end() ? RunPoint{} : RunPoint{found->second, 0};
}

bool RunTree::has_branches(ScopeId scope) const {
  const auto number = static_cast<size_t>(scope);
  return number < scopes_.size() && !scopes_[number].branches.empty();
}

RunPoint RunTree::point_after(BlockId block) const {
  const NodeId node = blocks_.node(block);
  return {node, blocks_.entry(block).position - at(node).first_position + 1};
}

BlockId RunTree::next_in_run(RunPoint point) const {
  const Node& node = at(point.node);
  return point.passed < node.blocks.size() ? node.blocks[point.passed] : kNoBlock;
}

TokenSpan RunTree::next_tokens(RunPoint point) const {
  const TokenSpan rest = TokenSpan(at(point.node).tokens).subspan(point.passed * span_);
  return rest.first(std::min<size_t>(rest.size(), span_));
}

std::span<const NodeId> RunTree::branches(RunPoint point) const {
  const Node& node = at(point.node);
  EMBER_CHECK(point.passed == node.blocks.size(), "branches are at the end of a run only");
  return node.children;
}

TokenSpan RunTree::first_tokens(NodeId node) const { return next_tokens({node, 0}); }

size_t RunTree::branches_not_after(std::span<const NodeId> branches, TokenSpan tokens) const {
  const auto end = std::partition_point(
      branches.begin(), branches.end(),
      [this, tokens](NodeId node) { return not_after(first_tokens(node), tokens); });
  return static_cast<size_t>(end - branches.begin());
}

BlockId RunTree::find(RunPoint point, TokenSpan tokens) const {
  if (const BlockId next = next_in_run(point); next != kNoBlock) {
    return same_tokens(next_tokens(point), tokens) ? next : kNoBlock;
  }
  const std::span<const NodeId> runs = branches(point);
  const size_t behind = branches_not_after(runs, tokens);
  if (behind == 0 || !same_tokens(first_tokens(runs[behind - 1]), tokens)) return kNoBlock;
  return first_block(runs[behind - 1]);
}

TokenSpan RunTree::tokens(BlockId block) const {
  const RunPoint after = point_after(block);
  return next_tokens({after.node, after.passed - 1});
}

// A run goes on with a full block while nothing branches from its end.
bool RunTree::can_extend(const Node& node, TokenSpan tokens) const {
  return node.parent != kNoNode && node.children.empty() && tokens.size() == span_;
}

BlockId RunTree::add(ScopeId scope, const BlockEntry& entry, TokenSpan tokens) {
  NodeId node = kNoNode;
  if (entry.parent == kNoBlock || this->scope(entry.parent) != scope) {
    node = root_node(scope, entry.parent);
  } else {
    const RunPoint point = point_after(entry.parent);
    const bool inside = point.passed < at(point.node).blocks.size();
    node = inside ? split(point.node, point.passed) : point.node;
  }
  const bool extends = can_extend(at(node), tokens);
  const NodeId holder = extends ? node : add_node(node, entry.position);
  const BlockId block = blocks_.add(entry, holder);
  Node& changed = at(holder);
  reserve_for(changed.tokens, tokens.size());
  reserve_for(changed.blocks, 1);
  changed.tokens.insert(changed.tokens.end(), tokens.begin(), tokens.end());
  changed.blocks.push_back(block);
  recount(holder);
  if (!extends) link_child(node, holder);
  return block;
}

void RunTree::expect_run(BlockId block, size_t more) {
  const NodeId node_id = blocks_.node(block);
  Node& node = at(node_id);
  const bool goes_on = node.children.empty() && node.tokens.size() == node.blocks.size() * span_;
  if (node.blocks.back() != block || !goes_on) return;
  node.tokens.reserve(node.tokens.size() + more * span_);
  node.blocks.reserve(node.blocks.size() + more);
  recount(node_id);
}

void RunTree::remove(BlockId block) {
  const NodeId node_id = blocks_.node(block);
  Node& node = at(node_id);
  EMBER_CHECK(node.blocks.back() == block && node.children.empty(), "only a leaf is removed");
  node.tokens.resize(node.tokens.size() - blocks_.entry(block).token_count);
  node.blocks.pop_back();
  blocks_.remove(block);
  if (!node.blocks.empty()) {
    trim(node.tokens, kSlackAfterRemoval);
    trim(node.blocks, kSlackAfterRemoval);
    recount(node_id);
    return;
  }

  const NodeId parent_id = node.parent;
  Node& parent = at(parent_id);
  // By number, not by tokens: this run has none any more.
  parent.children.erase(std::find(parent.children.begin(), parent.children.end(), node_id));
  remove_node(node_id);
  if (parent.parent != kNoNode) {
    join_with_only_child(parent_id);
  } else if (parent.children.empty()) {
    remove_root(parent_id);
  }
}

NodeId RunTree::root_node(ScopeId scope, BlockId after) {
  EMBER_CHECK(scope != kNoScope, "a block belongs to a scope");
  const auto number = static_cast<size_t>(scope);
  if (number >= scopes_.size()) scopes_.resize(number + 1);
  ScopeRoots& roots = scopes_[number];
  NodeId& root = after == kNoBlock
                     ? roots.first
                     : roots.branches.try_emplace(after, kNoNode).first->second;
  if (root != kNoNode) return root;
  root = add_node(kNoNode, after == kNoBlock ? 0 : blocks_.entry(after).position + 1);
  at(root).scope = scope;
  at(root).after = after;
  return root;
}

NodeId RunTree::add_node(NodeId parent, uint32_t first_position) {
  const NodeId node{nodes_.add()};
  at(node).parent = parent;
  at(node).first_position = first_position;
  if (parent != kNoNode) at(node).scope = at(parent).scope;
  return node;
}

void RunTree::remove_node(NodeId node) {
  heap_bytes_ -= at(node).counted_bytes;
  nodes_.remove(number(node));
}

void RunTree::remove_root(NodeId node) {
  ScopeRoots& roots = scopes_[static_cast<size_t>(at(node).scope)];
  if (at(node).after == kNoBlock) {
    roots.first = kNoNode;
  } else {
    roots.branches.erase(at(node).after);
  }
  remove_node(node);
}

// Cuts the run after `keep` blocks and returns the node of the upper part. The part that is cheaper
// to move gets the new node: children move with the lower part, and may be many.
NodeId RunTree::split(NodeId node_id, size_t keep) {
  const Node& node = at(node_id);
  const size_t rest = node.blocks.size() - keep + node.children.size();
  return keep <= rest ? split_off_front(node_id, keep) : split_off_back(node_id, keep);
}

NodeId RunTree::split_off_front(NodeId lower_id, size_t keep) {
  const NodeId upper_id = add_node(at(lower_id).parent, at(lower_id).first_position);
  Node& lower = at(lower_id);
  Node& upper = at(upper_id);
  replace_child(lower.parent, lower_id, upper_id);
  const auto block_end = lower.blocks.begin() + static_cast<std::ptrdiff_t>(keep);
  const auto token_end = lower.tokens.begin() + static_cast<std::ptrdiff_t>(keep * span_);
  upper.tokens.assign(lower.tokens.begin(), token_end);
  upper.blocks.assign(lower.blocks.begin(), block_end);
  upper.children.assign(1, lower_id);
  for (BlockId block : upper.blocks) blocks_.set_node(block, upper_id);

  lower.tokens.erase(lower.tokens.begin(), token_end);
  lower.blocks.erase(lower.blocks.begin(), block_end);
  trim(lower.tokens, kSlackAfterSplit);
  trim(lower.blocks, kSlackAfterSplit);
  lower.first_position += static_cast<uint32_t>(keep);
  lower.parent = upper_id;
  recount(lower_id);
  recount(upper_id);
  return upper_id;
}

NodeId RunTree::split_off_back(NodeId upper_id, size_t keep) {
  const auto position = at(upper_id).first_position + static_cast<uint32_t>(keep);
  const NodeId lower_id = add_node(upper_id, position);
  Node& upper = at(upper_id);
  Node& lower = at(lower_id);
  lower.tokens.assign(upper.tokens.begin() + static_cast<std::ptrdiff_t>(keep * span_),
                      upper.tokens.end());
  lower.blocks.assign(upper.blocks.begin() + static_cast<std::ptrdiff_t>(keep), upper.blocks.end());
  for (BlockId block : lower.blocks) blocks_.set_node(block, lower_id);
  move_children(upper_id, lower_id);

  upper.tokens.resize(keep * span_);
  upper.blocks.resize(keep);
  trim(upper.tokens, kSlackAfterSplit);
  trim(upper.blocks, kSlackAfterSplit);
  upper.children.assign(1, lower_id);
  recount(lower_id);
  recount(upper_id);
  return upper_id;
}

// The reverse of split, where one run of full blocks is all that goes on from `upper_id`. Again the
// cheaper part moves.
void RunTree::join_with_only_child(NodeId upper_id) {
  Node& upper = at(upper_id);
  if (upper.children.size() != 1) return;
  const NodeId lower_id = upper.children.front();
  if (first_tokens(lower_id).size() < span_) return;
  Node& lower = at(lower_id);
  const bool upper_moves = upper.blocks.size() <= lower.blocks.size() + lower.children.size();
  const NodeId kept_id = upper_moves ? lower_id : upper_id;
  const NodeId gone_id = upper_moves ? upper_id : lower_id;
  for (BlockId block : at(gone_id).blocks) blocks_.set_node(block, kept_id);
  if (upper_moves) replace_child(upper.parent, upper_id, lower_id);
  reserve_for(upper.tokens, lower.tokens.size());
  reserve_for(upper.blocks, lower.blocks.size());
  upper.tokens.insert(upper.tokens.end(), lower.tokens.begin(), lower.tokens.end());
  upper.blocks.insert(upper.blocks.end(), lower.blocks.begin(), lower.blocks.end());
  if (upper_moves) {
    lower.tokens.swap(upper.tokens);
    lower.blocks.swap(upper.blocks);
    lower.first_position = upper.first_position;
    lower.parent = upper.parent;
  } else {
    move_children(lower_id, upper_id);
  }
  recount(kept_id);
  remove_node(gone_id);
}

// Hands all children of `from` over to `to`, in place of those that `to` had.
void RunTree::move_children(NodeId from, NodeId to) {
  at(to).children = std::move(at(from).children);
  at(from).children.clear();
  for (NodeId child : at(to).children) at(child).parent = to;
}

void RunTree::link_child(NodeId parent, NodeId child) {
  std::vector<NodeId>& children = at(parent).children;
  const size_t slot = branches_not_after(children, first_tokens(child));
  children.insert(children.begin() + static_cast<std::ptrdiff_t>(slot), child);
  recount(parent);
}

void RunTree::replace_child(NodeId parent, NodeId old_child, NodeId new_child) {
  at(parent).children[slot_of_child(parent, old_child)] = new_child;
}

size_t RunTree::slot_of_child(NodeId parent, NodeId child) const {
  const std::vector<NodeId>& children = at(parent).children;
  const size_t behind = branches_not_after(children, first_tokens(child));
  EMBER_CHECK(behind > 0 && children[behind - 1] == child, "a node is its parent's child");
  return behind - 1;
}

void RunTree::recount(NodeId node_id) {
  Node& node = at(node_id);
  const size_t bytes = node.tokens.capacity() * sizeof(TokenId) +
                       node.blocks.capacity() * sizeof(BlockId) +
                       node.children.capacity() * sizeof(NodeId);
  heap_bytes_ = heap_bytes_ - node.counted_bytes + bytes;
  node.counted_bytes = bytes;
}

void RunTree::append_tree(NodeId root, std::vector<BlockId>& blocks) const {
  std::vector<NodeId> open = {root};
  while (!open.empty()) {
    const Node& node = at(open.back());
    open.pop_back();
    blocks.insert(blocks.end(), node.blocks.begin(), node.blocks.end());
    open.insert(open.end(), node.children.rbegin(), node.children.rend());
  }
}

std::vector<BlockId> RunTree::blocks_of(ScopeId scope) const {
  std::vector<BlockId> blocks;
  const auto number = static_cast<size_t>(scope);
  if (number >= scopes_.size()) return blocks;
  const ScopeRoots& roots = scopes_[number];
  if (roots.first != kNoNode) append_tree(roots.first, blocks);
  for (const auto& [after, root] : roots.branches) append_tree(root, blocks);
  return blocks;
}

// What hangs under shared blocks comes after them, since `shared` is the first scope.
std::vector<BlockId> RunTree::all_blocks() const {
  std::vector<BlockId> all;
  all.reserve(blocks_.size());
  for (size_t scope = 0; scope < scopes_.size(); ++scope) {
    const std::vector<BlockId> more = blocks_of(ScopeId{static_cast<uint32_t>(scope)});
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

size_t RunTree::memory_bytes() const {
  // A node of an unordered map of two numbers, as glibc's allocator rounds it, and its bucket.
  constexpr size_t kMapNodeBytes = 32 + sizeof(void*);
  size_t branches = 0;
  for (const ScopeRoots& roots : scopes_) branches += roots.branches.size();
  return nodes_.memory_bytes() + heap_bytes_ + scopes_.capacity() * sizeof(ScopeRoots) +
         branches * kMapNodeBytes;
}

}  // namespace ember
