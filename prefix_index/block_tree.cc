// Block tree: find, add, remove. No recursion: a chain may be of any length.
#include "prefix_index/block_tree.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "prefix_index/token_run.h"

namespace ember {
namespace {

// A list that loses and gains a block in turn must not move each time.
constexpr size_t kSlackAfterRemoval = 4;

}  // namespace

std::span<const BlockId> BlockTree::below(BlockId block) const {
  const Below& below = table_.below(block);
  if (below.is_list()) return lists_[below.list()];
  return {&below.block, below.block == kNoBlock ? size_t{0} : size_t{1}};
}

std::span<const BlockId> BlockTree::next(ScopeId scope, BlockId after) const {
  if (after != kNoBlock) {
    const ScopeId above = table_.scope(after);
    if (above == scope) return below(after);
    EMBER_CHECK(above == kSharedScope, "a tenant's chain stays the tenant's");
  }
  const auto number = static_cast<size_t>(scope);
  if (number >= scopes_.size()) return {};
  const ScopeRoots& roots = scopes_[number];
  if (after == kNoBlock) return roots.first;
  const auto found = roots.branches.find(after);
  if (found == roots.branches.end()) return {};
  return found->second;
}

bool BlockTree::has_branches(ScopeId scope) const {
  const auto number = static_cast<size_t>(scope);
  return number < scopes_.size() && !scopes_[number].branches.empty();
}

size_t BlockTree::not_after(std::span<const BlockId> blocks, TokenSpan tokens) const {
  const auto comes_before = [this, tokens](BlockId block) {
    return ember::not_after(this->tokens(block), tokens);
  };
  // Stored blocks enter in token order: mostly the new one is the last.
  if (!blocks.empty() && comes_before(blocks.back())) return blocks.size();
  const auto end = std::partition_point(blocks.begin(), blocks.end(), comes_before);
  return static_cast<size_t>(end - blocks.begin());
}

BlockId BlockTree::find(std::span<const BlockId> blocks, TokenSpan tokens) const {
  const size_t behind = not_after(blocks, tokens);
  if (behind == 0 || !same_tokens(this->tokens(blocks[behind - 1]), tokens)) return kNoBlock;
  return blocks[behind - 1];
}

BlockId BlockTree::add(ScopeId scope, const BlockEntry& entry, TokenSpan tokens) {
  EMBER_CHECK(scope != kNoScope, "a block belongs to a scope");
  const BlockId block = table_.add(entry, scope);
  cells_.put(block, tokens);
  link(scope, entry.parent, block);
  return block;
}

void BlockTree::remove(BlockId block) {
  EMBER_CHECK(table_.below(block).block == kNoBlock, "only a leaf is removed");
  unlink(table_.scope(block), table_.entry(block).parent, block);
  cells_.remove(block);
  table_.remove(block);
}

void BlockTree::link(ScopeId scope, BlockId parent, BlockId child) {
  if (parent != kNoBlock && table_.scope(parent) == scope) return link_below(parent, child);
  const auto number = static_cast<size_t>(scope);
  if (number >= scopes_.size()) scopes_.resize(number + 1);
  ScopeRoots& roots = scopes_[number];
  insert_into(parent == kNoBlock ? roots.first : roots.branches[parent], child);
}

void BlockTree::link_below(BlockId parent, BlockId child) {
  Below& below = table_.below(parent);
  if (below.block == kNoBlock) {
    below.block = child;
    return;
  }
  if (!below.is_list()) {
    const uint32_t number = lists_.add();
    insert_into(lists_[number], std::exchange(below.block, kNoBlock));
    below = Below::of_list(number);
  }
  insert_into(lists_[below.list()], child);
}

void BlockTree::unlink(ScopeId scope, BlockId parent, BlockId child) {
  if (parent != kNoBlock && table_.scope(parent) == scope) return unlink_below(parent, child);
  ScopeRoots& roots = scopes_[static_cast<size_t>(scope)];
  if (parent == kNoBlock) return erase_from(roots.first, child);
  const auto found = roots.branches.find(parent);
  erase_from(found->second, child);
  if (found->second.empty()) roots.branches.erase(found);
}

void BlockTree::unlink_below(BlockId parent, BlockId child) {
  Below& below = table_.below(parent);
  if (!below.is_list()) {
    EMBER_CHECK(below.block == child, "a block is named by its parent");
    below.block = kNoBlock;
    return;
  }
  Blocks& blocks = lists_[below.list()];
  erase_from(blocks, child);
  if (blocks.size() > 1) return;
  list_bytes_ -= blocks.capacity() * sizeof(BlockId);
  const BlockId last = blocks.front();
  lists_.remove(below.list());
  below.block = last;
}

void BlockTree::insert_into(Blocks& blocks, BlockId added) {
  const size_t slot = not_after(blocks, tokens(added));
  list_bytes_ -= blocks.capacity() * sizeof(BlockId);
  blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(slot), added);
  list_bytes_ += blocks.capacity() * sizeof(BlockId);
}

void BlockTree::erase_from(Blocks& blocks, BlockId removed) {
  const size_t behind = not_after(blocks, tokens(removed));
  EMBER_CHECK(behind > 0 && blocks[behind - 1] == removed, "a block is in its parent's list");
  list_bytes_ -= blocks.capacity() * sizeof(BlockId);
  blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(behind - 1));
  if (blocks.capacity() > kSlackAfterRemoval * blocks.size()) blocks.shrink_to_fit();
  list_bytes_ += blocks.capacity() * sizeof(BlockId);
}

void BlockTree::append_tree(std::span<const BlockId> first, std::vector<BlockId>& blocks) const {
  std::vector<BlockId> open(first.rbegin(), first.rend());
  while (!open.empty()) {
    blocks.push_back(open.back());
    open.pop_back();
    const std::span<const BlockId> next = below(blocks.back());
    open.insert(open.end(), next.rbegin(), next.rend());
  }
}

std::vector<BlockId> BlockTree::blocks_of(ScopeId scope) const {
  std::vector<BlockId> blocks;
  const auto number = static_cast<size_t>(scope);
  if (number >= scopes_.size()) return blocks;
  const ScopeRoots& roots = scopes_[number];
  append_tree(roots.first, blocks);
  for (const auto& [after, first] : roots.branches) append_tree(first, blocks);
  return blocks;
}

// What hangs under shared blocks comes after them, since `shared` is the first scope.
std::vector<BlockId> BlockTree::all_blocks() const {
  std::vector<BlockId> all;
  all.reserve(table_.size());
  for (size_t scope = 0; scope < scopes_.size(); ++scope) {
    const std::vector<BlockId> more = blocks_of(ScopeId{static_cast<uint32_t>(scope)});
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

size_t BlockTree::memory_bytes() const {
  // A node of an unordered map as glibc's allocator rounds it, and its bucket.
  constexpr size_t kMapNodeBytes = 48 + sizeof(void*);
  size_t branches = 0;
  for (const ScopeRoots& roots : scopes_) branches += roots.branches.size();
  return cells_.memory_bytes() + lists_.memory_bytes() + list_bytes_ +
         scopes_.capacity() * sizeof(ScopeRoots) + branches * kMapNodeBytes;
}

}  // namespace ember
