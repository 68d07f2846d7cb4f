// The heap of evictable blocks, and the search in it for one that may go.
#include "prefix_index/eviction.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace ember {

void LeafLru::set_rank_source(RankOf rank_of) {
  rank_of_ = std::move(rank_of);
  rerank_all();
}

uint32_t LeafLru::position(BlockId block) const {
  const auto id = static_cast<size_t>(block);
  return id < positions_.size() ? positions_[id] : kAbsent;
}

void LeafLru::put(uint32_t at, const Node& node) {
  heap_[at] = node;
  positions_[static_cast<size_t>(node.block)] = at;
}

// Moves the node at `at` up or down to where it belongs.
void LeafLru::sift(uint32_t at) {
  const Node moved = heap_[at];
  while (at > 0 && moved < heap_[(at - 1) / 2]) {
    put(at, heap_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  const auto size = static_cast<uint32_t>(heap_.size());
  for (uint32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < moved)) break;
    put(at, heap_[child]);
    at = child;
  }
  put(at, moved);
}

void LeafLru::reserve(size_t known, size_t members) {
  positions_.reserve(known);
  heap_.reserve(members);
}

void LeafLru::add(uint64_t last_use, BlockId block) {
  EMBER_CHECK(position(block) == kAbsent, "a block enters an evictable set twice");
  const auto id = static_cast<size_t>(block);
  if (id >= positions_.size()) positions_.resize(id + 1, kAbsent);
  heap_.push_back({last_use, block, rank_of(block)});
  sift(static_cast<uint32_t>(heap_.size() - 1));
}

void LeafLru::remove(uint64_t last_use, BlockId block) {
  EMBER_CHECK(contains(last_use, block), "a block leaves an evictable set that it is not in");
  const uint32_t at = position(block);
  positions_[static_cast<size_t>(block)] = kAbsent;
  const Node last = heap_.back();
  heap_.pop_back();
  if (last.block == block) return;
  heap_[at] = last;
  sift(at);
}

bool LeafLru::contains(uint64_t last_use, BlockId block) const {
  const uint32_t at = position(block);
  return at != kAbsent && heap_[at].last_use == last_use;
}

size_t LeafLru::memory_bytes() const {
  return heap_.capacity() * sizeof(Node) +
         (positions_.capacity() + frontier_.capacity()) * sizeof(uint32_t);
}

void LeafLru::rerank(BlockId block) {
  const uint32_t at = position(block);
  if (at == kAbsent) return;
  const EvictionRank rank = rank_of(block);
  if (std::exchange(heap_[at].rank, rank) != rank) sift(at);
}

void LeafLru::rerank_all() {
  for (Node& node : heap_) node.rank = rank_of(node.block);
  std::make_heap(heap_.begin(), heap_.end(), [](const Node& a, const Node& b) { return b < a; });
  for (uint32_t at = 0; at < heap_.size(); ++at) {
    positions_[static_cast<size_t>(heap_[at].block)] = at;
  }
}

std::optional<BlockId> LeafLru::oldest(const std::function<bool(BlockId)>& may_go) const {
  if (heap_.empty()) return std::nullopt;
  // In order, without taking any out: the next is always below one that was looked at.
  const auto later = [this](uint32_t a, uint32_t b) { return heap_[b] < heap_[a]; };
  frontier_.assign(1, 0);
  while (!frontier_.empty()) {
    std::pop_heap(frontier_.begin(), frontier_.end(), later);
    const uint32_t at = frontier_.back();
    frontier_.pop_back();
    if (may_go(heap_[at].block)) return heap_[at].block;
    for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap_.size(); ++child) {
      frontier_.push_back(child);
      std::push_heap(frontier_.begin(), frontier_.end(), later);
    }
  }
  return std::nullopt;
}

}  // namespace ember
