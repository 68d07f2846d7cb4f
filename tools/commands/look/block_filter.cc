// Which blocks are meant.
#include "tools/commands/look/block_filter.h"

#include <algorithm>

#include "tools/commands/progress.h"

namespace ember {
namespace {

bool is_digits(const std::string& text) {
  return text.size() <= 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Of a tail at rest no use is known: the last one is not later than that of the block which it
// hangs on, since who uses a tail uses that too. 0: nothing is known.
int64_t latest_use(const BlockTree& tree, const BlockNode& node) {
  const bool known = node.last_use_unix_us > 0 || node.parent == kNoNode;
  return known ? node.last_use_unix_us : tree.node(node.parent).last_use_unix_us;
}

}  // namespace

Status check_filter(const BlockFilter& filter) {
  for (const std::string* digits : {&filter.prefix, &filter.name_space}) {
    if (is_digits(*digits)) continue;
    return {ErrorCode::kInvalidArgument,
            "'" + *digits + "' is not the beginning of a hash: expected at most 32 of 0-9a-f"};
  }
  return {};
}

Status check_known(const BlockFilter& filter, const BlockTree& tree) {
  const auto& names = tree.name_spaces();
  const bool name_known =
      filter.name_space.empty() ||
      std::any_of(names.begin(), names.end(), [&filter](const NamespaceHash& name) {
        return name.hex().rfind(filter.name_space, 0) == 0;
      });
  if (!name_known) {
    return {ErrorCode::kInvalidArgument,
            filter.name_space + ": no namespace of the store begins so"};
  }
  const auto& scopes = tree.scopes();
  const bool scope_known =
      filter.scope.empty() || std::find(scopes.begin(), scopes.end(), filter.scope) != scopes.end();
  if (scope_known) return {};
  return {ErrorCode::kInvalidArgument, filter.scope + ": the store has nothing of this scope"};
}

bool passes(const BlockFilter& filter, const BlockTree& tree, const BlockNode& node,
            int64_t now_unix_us) {
  const int64_t last_use_us = latest_use(tree, node);
  const bool use_known = last_use_us > 0;
  const int64_t unused_us = now_unix_us - last_use_us;
  if (filter.tails_only && !node.tail) return false;
  if (filter.blocks_only && node.tail) return false;
  if (filter.pinned && !node.pinned) return false;
  if (filter.leased && !node.leased) return false;
  if (filter.damaged && !node.damaged) return false;
  if (filter.unreachable && !node.orphan) return false;
  if (filter.tier && (node.tiers >> static_cast<unsigned>(*filter.tier) & 1u) == 0) return false;
  if (filter.least_hits && node.hits < *filter.least_hits) return false;
  if (filter.most_hits && node.hits > *filter.most_hits) return false;
  if (filter.unused_us && (!use_known || unused_us < *filter.unused_us)) return false;
  if (filter.used_us && (!use_known || unused_us > *filter.used_us)) return false;
  if (!filter.scope.empty() && tree.scopes()[node.scope] != filter.scope) return false;
  if (filter.name_space.empty()) return true;
  return tree.name_spaces()[node.name_space].hex().rfind(filter.name_space, 0) == 0;
}

Result<BlockTree> read_tree(StoreReader& reader, CommandIo& io) {
  Progress progress(io);
  const auto expected = static_cast<double>(reader.disk_stats().blocks + 1);
  return BlockTree::read(reader, [&](uint64_t blocks) {
    progress.show("reading blocks", static_cast<double>(blocks) / expected);
    return !io.stopped();
  });
}

Result<uint32_t> start_of(const BlockTree& tree, const std::string& prefix) {
  if (prefix.empty()) return kNoNode;
  const std::vector<uint32_t> found = tree.find(prefix);
  if (found.size() == 1) return found[0];
  return Error{
      ErrorCode::kInvalidArgument,
      prefix + ": " +
          (found.empty() ? "no block's hash begins so"
                         : std::to_string(found.size()) + " blocks' hashes begin so, "
                                                          "expected one: give more digits")};
}

}  // namespace ember
