// Block tree: all blocks and tails of a store as a forest: who hangs under whom, how much hangs
// there.
//
// Journey    store_reader -> [block_tree] -> ls, tree, du, rm, gc
// Invariant  96 bytes a block, whatever its tokens; every record is in it exactly once, damaged
//            chains too: one whose parent is not there is a root of its own
// Threads    one
// Not here   tokens and text, which are read again for the lines that are shown (prefix_text.h)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store_reader.h"

namespace ember {

inline constexpr uint32_t kNoNode = UINT32_MAX;

struct BlockNode {
  BlockHash hash;
  BlockHash parent_hash;
  uint32_t parent = kNoNode;
  uint32_t first_child = kNoNode;
  uint32_t next_sibling = kNoNode;
  uint32_t position = 0;
  uint32_t tokens = 0;
  uint32_t hits = 0;
  uint64_t stored_bytes = 0;
  uint64_t raw_bytes = 0;
  int64_t last_use_unix_us = 0;
  uint32_t scope = 0;       // index into BlockTree::scopes
  uint16_t name_space = 0;  // index into BlockTree::name_spaces
  uint16_t build = 0;       // index into BlockTree::builds
  uint8_t tiers = 0;        // bit by Tier
  bool tail = false;
  bool orphan = false;  // its parent is not there, and it is no first block
  bool durable = true;
  bool damaged = false;
  bool pinned = false;
  bool leased = false;
};

class BlockTree {
 public:
  // What the walk has told so far, for a progress bar; returns false to stop.
  using OnBlock = std::function<bool(uint64_t blocks)>;
  // Errors: those of StoreReader::walk; kCancelled.
  static Result<BlockTree> read(StoreReader& reader, const OnBlock& on_block = {});

  // A tree of one.
  static BlockTree of(const BlockSight& sight) {
    BlockTree tree;
    tree.add(sight);
    return tree;
  }

  const std::vector<BlockNode>& nodes() const { return nodes_; }
  const BlockNode& node(uint32_t index) const { return nodes_[index]; }
  // First blocks and orphans. Siblings and roots stand in the order of their hashes.
  const std::vector<uint32_t>& roots() const { return roots_; }
  const std::vector<NamespaceHash>& name_spaces() const { return name_spaces_; }
  const std::vector<std::string>& scopes() const { return scopes_; }
  // Numerics builds of its records (engine/model/identity.h).
  const std::vector<uint64_t>& builds() const { return builds_; }
  const StoreReader::Walked& walked() const { return walked_; }

  // The nodes whose hash begins with these hexadecimal digits.
  std::vector<uint32_t> find(const std::string& digits) const;
  // A node, then what hangs under it, parents right before their children; all of it when
  // `from` is kNoNode. `visit` returns false to leave out what hangs under a node.
  using Visitor = std::function<bool(uint32_t index, uint32_t depth)>;
  void descend(uint32_t from, const Visitor& visit) const;
  // From its first block down to the node itself.
  std::vector<uint32_t> path_to(uint32_t index) const;

  struct Sums {
    uint64_t blocks = 0;
    uint64_t tails = 0;
    uint64_t tokens = 0;
    uint64_t stored_bytes = 0;
    uint64_t raw_bytes = 0;
    uint64_t hits = 0;
    int64_t last_use_unix_us = 0;  // the latest
    void add(const BlockNode& node);
    void add(const Sums& other);
  };
  // For each node, itself and all below it.
  std::vector<Sums> subtree_sums() const;

 private:
  void add(const BlockSight& sight);
  void link();
  void cut_circles();

  std::vector<BlockNode> nodes_;
  std::vector<uint32_t> roots_;
  std::vector<NamespaceHash> name_spaces_;
  std::vector<std::string> scopes_;
  std::vector<uint64_t> builds_;
  std::map<NamespaceHash, uint32_t> name_space_numbers_;
  std::map<std::string, uint32_t> scope_numbers_;
  std::map<uint64_t, uint32_t> build_numbers_;
  StoreReader::Walked walked_;
};

}  // namespace ember
