// Naive index: what RadixIndex must do, as a plain list of token paths and brute force.
//
// Journey    none; the oracle beside radix_index
// Invariant  every answer is computed anew from the list; nothing is kept up to date
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefix_index/radix_index.h"

namespace ember {

struct NaiveBlock {
  BlockId id = kNoBlock;  // the number that RadixIndex gave it
  ScopeId scope = kSharedScope;
  size_t shared_blocks = 0;   // of a tenant's block: how many blocks of its chain are shared
  std::vector<TokenId> path;  // all tokens from the root to this block's end
  uint32_t token_count = 0;
  uint64_t build = 0;
  uint64_t last_use = 0;
  uint32_t hits = 0;
  bool damaged = false;
  std::array<int32_t, kTierCount> place = {-1, -1, -1, -1};

  bool same_place(const NaiveBlock& other) const {
    return scope == other.scope && shared_blocks == other.shared_blocks && path == other.path &&
           token_count == other.token_count;
  }
  bool in(size_t tier) const { return place[tier] >= 0; }
  bool anywhere() const { return in(0) || in(1) || in(2) || in(3); }
};

class NaiveIndex {
 public:
  explicit NaiveIndex(uint32_t span) : span_(span) {}

  std::vector<NaiveBlock>& blocks() { return blocks_; }
  const std::vector<NaiveBlock>& blocks() const { return blocks_; }

  bool is_parent(const NaiveBlock& parent, const NaiveBlock& child) const;
  const NaiveBlock* parent_of(const NaiveBlock& child) const;
  std::vector<const NaiveBlock*> children_of(const NaiveBlock& parent) const;
  bool usable(const NaiveBlock& block, uint64_t build) const;
  // The longest usable prefix of `tokens` for `scope`, and of the paths that long the most shared
  // blocks that one has.
  struct Longest {
    size_t tokens = 0;
    size_t shared_blocks = 0;
  };
  Longest match(ScopeId scope, TokenSpan tokens, size_t limit, uint64_t build,
                size_t shared_blocks) const;
  bool may_leave(const NaiveBlock& block, size_t tier) const;
  // A block is stranded if it is in a tier and an ancestor that is no hole is in none.
  bool stranded(const NaiveBlock& block) const;

  // Fails the running test where `index` says anything else than this model.
  void expect_equal(const RadixIndex& index) const;
  // The same for the answers to a prompt.
  void expect_same_match(const RadixIndex& index, ScopeId scope, TokenSpan tokens, size_t limit,
                         uint64_t build, size_t shared_blocks = 0) const;

 private:
  void expect_block_equal(const RadixIndex& index, const NaiveBlock& block) const;
  std::vector<BlockId> child_ids(const NaiveBlock& parent, ScopeId scope) const;
  bool holds_parent(const NaiveBlock& child, size_t tier) const;
  bool whole_path_usable(const NaiveBlock& block, uint64_t build) const;

  const uint32_t span_;
  std::vector<NaiveBlock> blocks_;
};

}  // namespace ember
