// Block filter: which blocks a command is asked about.
//
// Journey    flags -> [block_filter] -> ls, tree, du, verify, export, rm
// Invariant  a filter that was not given lets everything through
// Threads    any; pure
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "prefix_index/journey.h"
#include "tools/commands/command_context.h"
#include "tools/commands/look/block_tree.h"

namespace ember {

struct BlockFilter {
  std::string prefix = {};      // first digits of a block's hash: it, and what hangs under it
  std::string name_space = {};  // first digits of a namespace
  std::string scope = {};
  std::optional<Tier> tier = {};
  std::optional<uint64_t> least_hits = {};
  std::optional<uint64_t> most_hits = {};
  std::optional<int64_t> unused_us = {};  // not used for so long, where the last use is known
  std::optional<int64_t> used_us = {};    // used within this time
  bool tails_only = false;
  bool blocks_only = false;
  bool pinned = false;
  bool leased = false;
  bool damaged = false;
  bool unreachable = false;  // their parent is not there

  bool operator==(const BlockFilter&) const = default;
};

// Errors: kInvalidArgument for digits that are none.
Status check_filter(const BlockFilter& filter);

// Errors: kInvalidArgument where the store has no such namespace or scope.
Status check_known(const BlockFilter& filter, const BlockTree& tree);

// Whether the node itself is meant; `prefix` is not looked at.
bool passes(const BlockFilter& filter, const BlockTree& tree, const BlockNode& node,
            int64_t now_unix_us);

// The tree of a store, read behind a bar. Errors: as BlockTree::read.
Result<BlockTree> read_tree(StoreReader& reader, CommandIo& io);

// Where a walk begins: every root, or the one node that `prefix` names.
// Errors: kInvalidArgument naming the digits where none or more than one begin so.
Result<uint32_t> start_of(const BlockTree& tree, const std::string& prefix);

}  // namespace ember
