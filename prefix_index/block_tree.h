// Block tree: which blocks follow which, in each scope, and their token ids.
//
// Journey    tokens -> [block_tree] -> radix_index
// Owns       the token ids of all known blocks; the lists of branches; the first blocks of each
//            scope, and what a tenant has after a block of `shared`
// Invariant  what follows a block in its own scope is nothing, one block that its entry names, or a
//            list of two and more. Blocks that follow the same one are in token order and differ.
//            So the shape follows from the set of blocks, however it came about
// Threads    engine thread only; pure
// Not here   the state of a block (prefix_index/block_table.h)
//
// A block without a branch costs four bytes here, in its entry; only where chains part is there a
// list. So long chains and short ones take the same memory.
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
#include "prefix_index/token_cells.h"

namespace ember {

class BlockTree {
 public:
  // `table` keeps for each block what follows it; it outlives the tree.
  BlockTree(uint32_t block_tokens, BlockTable& table)
      : span_(block_tokens), table_(table), cells_(block_tokens) {}

  // What a scope has next after a block of its own or of `shared` (kNoBlock: its first blocks), in
  // token order. Good until the next change.
  std::span<const BlockId> next(ScopeId scope, BlockId after) const;
  // Whether the scope goes on after any block of `shared`.
  bool has_branches(ScopeId scope) const;
  // Of `blocks` in token order, how many are not after `tokens`: the one that agrees furthest is
  // the last of these or the one behind it.
  size_t not_after(std::span<const BlockId> blocks, TokenSpan tokens) const;
  // The block among these with exactly these tokens, or kNoBlock.
  BlockId find(std::span<const BlockId> blocks, TokenSpan tokens) const;
  TokenSpan tokens(BlockId block) const {
    return cells_.get(block, table_.entry(block).token_count);
  }

  // Adds a block that find() does not know after `entry.parent` (kNoBlock: a first block of the
  // scope). A parent of another scope is one of `shared`.
  BlockId add(ScopeId scope, const BlockEntry& entry, TokenSpan tokens);
  // Removes a block that nothing follows.
  void remove(BlockId block);

  std::vector<BlockId> all_blocks() const;  // parents before children
  std::vector<BlockId> blocks_of(ScopeId scope) const;  // parents before children
  size_t memory_bytes() const;
  void check_invariants() const;

 private:
  using Blocks = std::vector<BlockId>;
  struct ScopeRoots {
    Blocks first;                                  // no block before them
    std::unordered_map<BlockId, Blocks> branches;  // after blocks of `shared`
  };

  std::span<const BlockId> below(BlockId block) const;
  void link(ScopeId scope, BlockId parent, BlockId child);
  void link_below(BlockId parent, BlockId child);
  void unlink(ScopeId scope, BlockId parent, BlockId child);
  void unlink_below(BlockId parent, BlockId child);
  void insert_into(Blocks& blocks, BlockId added);
  void erase_from(Blocks& blocks, BlockId removed);
  void append_tree(std::span<const BlockId> first, std::vector<BlockId>& blocks) const;
  void check_siblings(ScopeId scope, BlockId parent, std::span<const BlockId> blocks) const;

  const uint32_t span_;
  BlockTable& table_;
  TokenCells cells_;
  StablePool<Blocks> lists_;        // of blocks that several follow in their own scope
  std::vector<ScopeRoots> scopes_;  // by ScopeId
  size_t list_bytes_ = 0;           // of all lists
};

}  // namespace ember
