// Radix index: which token prefixes are known, block by block, and in which tiers they are.
//
// Journey    block_hash -> [radix_index] -> restore_plan, offload, eviction
// Owns       one entry for each known block and its token ids; for each scope a tree from the root
//            on, and one under each shared block where it goes on
// Invariant  a block is reached by comparing token ids from the root on, never by its hash alone;
//            every entry's parent is an entry (or a root); a block with children is a full block;
//            a block's parent is of its own scope or of `shared`
// Threads    engine thread only; pure: no I/O, no clock (use order is a counter of the caller's)
// Not here   which of the evictable blocks goes first (prefix_index/eviction.h)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "prefix_index/block_hash.h"
#include "prefix_index/eviction.h"
#include "prefix_index/journey.h"
#include "prefix_index/scope.h"
#include "prefix_index/token.h"

namespace ember {

// What the index knows of one block. `place`: a slot number on device and host, an epoch on disk.
struct BlockEntry {
  BlockHash hash;
  uint64_t numerics_build = 0;  // who computed it (store/record.h)
  uint64_t last_use = 0;        // the caller's counter
  BlockId parent = kNoBlock;    // kNoBlock: a first block
  uint32_t position = 0;        // in its chain; the first token is position * span
  uint32_t token_count = 0;     // span for a full block, fewer for a tail
  uint32_t hits = 0;
  uint32_t children = 0;
  std::array<int32_t, kTierCount> place = {-1, -1, -1, -1};  // -1: not in that tier
  bool damaged = false;  // a hole: known, unreadable, healed by the next commit

  bool in(Tier tier) const { return place[static_cast<size_t>(tier)] >= 0; }
  bool anywhere() const {
    return in(Tier::kDevice) || in(Tier::kHost) || in(Tier::kDisk) || in(Tier::kRemote);
  }
};

// The longest known prefix of a prompt.
struct PrefixMatch {
  std::vector<BlockId> blocks;  // in order; the last may agree only in its first tokens
  size_t tokens = 0;            // that agree, at most the limit of the call
};

class RadixIndex {
 public:
  explicit RadixIndex(uint32_t block_tokens = kDefaultBlockTokens);
  ~RadixIndex();
  RadixIndex(const RadixIndex&) = delete;
  RadixIndex& operator=(const RadixIndex&) = delete;

  // The longest prefix of `tokens`, at most `limit` tokens, all of whose blocks are usable:
  // in some tier, not damaged, of this numerics build (0: of any). Down to the token: the last
  // block may be a tail or a full block that agrees in part; the one that agrees furthest is taken.
  //
  // For a tenant: the longest of its own walk from the root and of those that follow `shared` and
  // then go on alone; at equal length the one that is shared further. A path leaves `shared` after
  // `shared_blocks` blocks at the earliest. Of shared blocks a tenant gets whole ones only: an
  // answer down to the token would let it find a published text word by word.
  // Cost: linear in the tokens, by comparison alone; no hashing. For a tenant one look-up among its
  // own branches for each shared block; what others have there plays no part.
  PrefixMatch match(ScopeId scope, TokenSpan tokens, size_t limit, uint64_t numerics_build,
                    size_t shared_blocks = 0) const;

  // Marks a block as used at `now` (a counter that never falls), and as hit when `hit`.
  void touch(BlockId block, uint64_t now, bool hit);

  // The scope's entry for the block `tokens` after `parent` (kNoBlock: a first block), made if
  // absent. An existing entry is returned whatever its state, and unchanged.
  // tokens.size() is 1..span; a parent must be a full block, of the same scope or of `shared`.
  BlockId insert(ScopeId scope, BlockId parent, TokenSpan tokens, const BlockHash& hash,
                 uint64_t numerics_build, uint64_t now);
  // Asks for the memory that inserting a block of this hash will need.
  void prefetch(const BlockHash& hash) const;
  // Before many blocks come that were stored: so many in all, so many of them without children.
  void expect(size_t blocks, size_t leaves_on_disk);
  // The scope's existing entry for exactly these tokens after `parent`, or kNoBlock.
  BlockId find_child(ScopeId scope, BlockId parent, TokenSpan tokens) const;
  // By hash: for administration and reopening. The caller still compares tokens.
  BlockId find(const BlockHash& hash) const;
  // Whether this number is that of a block with this hash: numbers of erased blocks are used again.
  bool names(BlockId block, const BlockHash& hash) const;
  // By std::hash of the hash: a block that a shadow directory (prefix_index/duel.h) named.
  BlockId find_short(size_t short_hash) const;
  // The scope's children of a block (kNoBlock: its first blocks), in token order.
  std::vector<BlockId> children(ScopeId scope, BlockId block) const;

  // Removes an entry that has no children and is in no tier.
  void erase(BlockId block);

  const BlockEntry& entry(BlockId block) const;
  std::vector<TokenId> tokens(BlockId block) const;  // of this block alone
  ScopeId scope(BlockId block) const;
  // Every change of an entry's state goes through these, so that the evictable sets follow.
  void set_place(BlockId block, Tier tier, int32_t place);
  void clear_place(BlockId block, Tier tier);
  void set_damaged(BlockId block, bool damaged);
  void set_numerics_build(BlockId block, uint64_t numerics_build);

  // The blocks that may leave a tier now, the next to go first (see eviction.h for the rule).
  const LeafLru& evictable(Tier tier) const;
  LeafLru& evictable(Tier tier);  // to rank them

  size_t size() const;                      // entries
  size_t count(Tier tier) const;            // entries in that tier
  // Entries with children that are in no tier and not damaged. While there is none, no entry in a
  // tier is unreachable but below a hole.
  size_t gaps() const;
  size_t memory_bytes() const;              // what the index itself holds, about
  std::vector<BlockId> all_blocks() const;  // parents before children
  std::vector<BlockId> blocks_of(ScopeId scope) const;  // the scope's own, parents before children

  // Aborts unless every invariant above holds. For tests; linear in the entries.
  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ember
