// Run tree: blocks in runs without a branch, and the branches between the runs.
//
// Journey    tokens -> [run_tree] -> radix_index
// Owns       the token ids of all known blocks; one node for each run; one root for each scope's
//            first blocks, and one for each shared block after which a tenant goes on alone
// Invariant  a run holds full blocks, or one tail, which has no children. Children are in token
//            order and differ. A run never has a single child that could go on in it (a full
//            block), so the shape follows from the set of blocks, however it came about
// Threads    engine thread only; pure
// Not here   the state of a block (prefix_index/block_table.h)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "prefix_index/block_table.h"
#include "prefix_index/scope.h"
#include "prefix_index/stable_pool.h"
#include "prefix_index/token.h"

namespace ember {

// A place in the tree: after the first `passed` blocks of a node's run.
struct RunPoint {
  NodeId node = kNoNode;
  size_t passed = 0;
};

class RunTree {
 public:
  // `blocks` keeps for each block the number of its node; it outlives the tree.
  RunTree(uint32_t block_tokens, BlockTable& blocks) : span_(block_tokens), blocks_(blocks) {}

  // The point where a scope goes on after a block of `shared` (kNoBlock: before its first blocks);
  // node kNoNode if nothing of the scope is known there.
  RunPoint root_point(ScopeId scope, BlockId after) const;
  // Whether the scope goes on after any block of `shared`.
  bool has_branches(ScopeId scope) const;
  // The point after a block in the block's own scope.
  RunPoint point_after(BlockId block) const;

  // The block that follows `point` in its run, or kNoBlock at the run's end.
  BlockId next_in_run(RunPoint point) const;
  TokenSpan next_tokens(RunPoint point) const;  // its token ids
  // At a run's end: the runs that go on from there, in token order.
  std::span<const NodeId> branches(RunPoint point) const;
  BlockId first_block(NodeId node) const { return nodes_[number(node)].blocks.front(); }
  TokenSpan first_tokens(NodeId node) const;
  // Of `branches`, how many are not after `tokens` in token order: the run that agrees furthest is
  // the last of these or the one behind it.
  size_t branches_not_after(std::span<const NodeId> branches, TokenSpan tokens) const;
  // The child after `point` with exactly these tokens, or kNoBlock.
  BlockId find(RunPoint point, TokenSpan tokens) const;
  TokenSpan tokens(BlockId block) const;
  ScopeId scope(BlockId block) const { return at(blocks_.node(block)).scope; }

  // Adds a block that find() does not know after `entry.parent` (kNoBlock: a first block of the
  // scope). A parent of another scope is one of `shared`, and the block begins a tree of its own.
  // A run that it leaves in the middle is split; both halves keep their blocks' numbers.
  BlockId add(ScopeId scope, const BlockEntry& entry, TokenSpan tokens);
  // `more` full blocks will follow `block` in its run, one after another: makes room for just them.
  void expect_run(BlockId block, size_t more);
  // Removes a childless block; where one run alone remains to go on, it is joined to its parent's.
  void remove(BlockId block);

  std::vector<BlockId> all_blocks() const;  // parents before children
  std::vector<BlockId> blocks_of(ScopeId scope) const;  // parents before children
  size_t memory_bytes() const;
  void check_invariants() const;

 private:
  struct Node {
    NodeId parent = kNoNode;      // kNoNode: a root, whose run is empty
    uint32_t first_position = 0;  // of its first block
    ScopeId scope = kSharedScope;
    BlockId after = kNoBlock;  // of a root: the shared block that it hangs under
    std::vector<TokenId> tokens;
    std::vector<BlockId> blocks;
    std::vector<NodeId> children;
    size_t counted_bytes = 0;  // what the three vectors added to heap_bytes_
  };

  struct ScopeRoots {
    NodeId first = kNoNode;                         // before the first blocks
    std::unordered_map<BlockId, NodeId> branches;  // after blocks of `shared`
  };

  static uint32_t number(NodeId node) { return static_cast<uint32_t>(node); }
  Node& at(NodeId node) { return nodes_[number(node)]; }
  const Node& at(NodeId node) const { return nodes_[number(node)]; }
  bool can_extend(const Node& node, TokenSpan tokens) const;
  NodeId root_node(ScopeId scope, BlockId after);
  NodeId add_node(NodeId parent, uint32_t first_position);
  void remove_node(NodeId node);
  void remove_root(NodeId node);
  void append_tree(NodeId root, std::vector<BlockId>& blocks) const;
  NodeId split(NodeId node, size_t keep);
  NodeId split_off_front(NodeId lower, size_t keep);
  NodeId split_off_back(NodeId upper, size_t keep);
  void join_with_only_child(NodeId upper);
  void move_children(NodeId from, NodeId to);
  void link_child(NodeId parent, NodeId child);
  void replace_child(NodeId parent, NodeId old_child, NodeId new_child);
  size_t slot_of_child(NodeId parent, NodeId child) const;
  void recount(NodeId node);
  std::vector<NodeId> checked_roots() const;
  void check_node(NodeId node) const;
  void check_children(NodeId node) const;

  const uint32_t span_;
  BlockTable& blocks_;
  StablePool<Node> nodes_;
  std::vector<ScopeRoots> scopes_;  // by ScopeId
  size_t heap_bytes_ = 0;
};

}  // namespace ember
