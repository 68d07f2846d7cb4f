// Block tree: the check of its invariants, for tests.
#include "base/check.h"
#include "prefix_index/block_tree.h"
#include "prefix_index/token_run.h"

namespace ember {

void BlockTree::check_invariants() const {
  size_t lists = 0;
  size_t bytes = 0;
  size_t linked = 0;
  for (size_t number = 0; number < scopes_.size(); ++number) {
    const ScopeId scope{static_cast<uint32_t>(number)};
    const ScopeRoots& roots = scopes_[number];
    check_siblings(scope, kNoBlock, roots.first);
    linked += roots.first.size();
    bytes += roots.first.capacity() * sizeof(BlockId);
    for (const auto& [after, blocks] : roots.branches) {
      EMBER_CHECK(scope != kSharedScope && table_.scope(after) == kSharedScope,
                  "a tenant's blocks hang under shared ones, and nothing else crosses scopes");
      EMBER_CHECK(!blocks.empty(), "a branch without blocks is gone");
      check_siblings(scope, after, blocks);
      linked += blocks.size();
      bytes += blocks.capacity() * sizeof(BlockId);
    }
  }
  const std::vector<BlockId> all = all_blocks();
  for (BlockId block : all) {
    const Below& known = table_.below(block);
    check_siblings(table_.scope(block), block, below(block));
    linked += below(block).size();
    if (!known.is_list()) continue;
    ++lists;
    bytes += lists_[known.list()].capacity() * sizeof(BlockId);
    EMBER_CHECK(lists_[known.list()].size() > 1, "a list is of several blocks");
  }
  EMBER_CHECK(linked == all.size() && all.size() == table_.size(), "every block is linked once");
  EMBER_CHECK(lists == lists_.size(), "every list is some block's");
  EMBER_CHECK(bytes == list_bytes_, "the bytes of the lists are counted");
}

void BlockTree::check_siblings(ScopeId scope, BlockId parent,
                               std::span<const BlockId> blocks) const {
  const bool first = parent == kNoBlock;
  const uint32_t position = first ? 0 : table_.entry(parent).position + 1;
  EMBER_CHECK(first || blocks.empty() || table_.entry(parent).token_count == span_,
              "nothing hangs under a tail");
  for (size_t i = 0; i < blocks.size(); ++i) {
    const BlockEntry& entry = table_.entry(blocks[i]);
    EMBER_CHECK(table_.scope(blocks[i]) == scope, "what follows a block is of the asked scope");
    EMBER_CHECK(entry.parent == parent && entry.position == position, "a chain is a chain");
    EMBER_CHECK(entry.token_count >= 1 && entry.token_count <= span_, "a block has its tokens");
    EMBER_CHECK(i == 0 || !ember::not_after(tokens(blocks[i]), tokens(blocks[i - 1])),
                "siblings are in token order and differ");
  }
}

}  // namespace ember
