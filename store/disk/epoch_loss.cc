// Epoch loss: bytes of whole subtrees, by the epochs they hang on.
#include "store/disk/epoch_loss.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/check.h"

namespace ember {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// Indices of blocks, parents before children, and for each the index of its parent.
struct Forest {
  std::vector<size_t> order;
  std::vector<size_t> parent;
};

Forest forest_of(std::span<const StoredBlock> blocks) {
  std::unordered_map<BlockHash, size_t> at;
  for (size_t i = 0; i < blocks.size(); ++i) at.emplace(blocks[i].hash, i);
  Forest forest;
  forest.order.resize(blocks.size());
  forest.parent.resize(blocks.size(), kNone);
  std::iota(forest.order.begin(), forest.order.end(), size_t{0});
  std::stable_sort(forest.order.begin(), forest.order.end(), [&](size_t a, size_t b) {
    return blocks[a].position < blocks[b].position;
  });
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto found = at.find(blocks[i].parent);
    if (found == at.end() || blocks[found->second].position >= blocks[i].position) continue;
    forest.parent[i] = found->second;
  }
  return forest;
}

}  // namespace

uint32_t epoch_to_lose(std::span<const StoredBlock> blocks, std::span<const uint32_t> epochs) {
  EMBER_CHECK(!epochs.empty(), "no epoch to choose from");
  std::unordered_map<uint32_t, uint64_t> weight;
  const Forest forest = forest_of(blocks);
  // Of each block: the epochs of its chain. Most chains cross few, and children share their
  // parent's list where they add nothing to it.
  std::vector<size_t> list_of(blocks.size(), kNone);
  std::vector<std::vector<uint32_t>> lists;
  for (const size_t i : forest.order) {
    const size_t above = forest.parent[i] == kNone ? kNone : list_of[forest.parent[i]];
    const bool known = above != kNone && std::find(lists[above].begin(), lists[above].end(),
                                                   blocks[i].epoch) != lists[above].end();
    list_of[i] = above;
    if (above == kNone || !known) {
      std::vector<uint32_t> longer = above == kNone ? std::vector<uint32_t>() : lists[above];
      longer.push_back(blocks[i].epoch);
      list_of[i] = lists.size();
      lists.push_back(std::move(longer));
    }
    if (blocks[i].epoch == 0) continue;  // nothing left of it to lose
    for (const uint32_t epoch : lists[list_of[i]]) weight[epoch] += blocks[i].stored_bytes;
  }
  return *std::min_element(epochs.begin(), epochs.end(), [&](uint32_t a, uint32_t b) {
    return weight[a] != weight[b] ? weight[a] < weight[b] : a > b;
  });
}

std::unordered_set<BlockHash> holes_after(std::span<const StoredBlock> blocks, uint32_t epoch) {
  const Forest forest = forest_of(blocks);
  std::vector<char> needed(blocks.size(), 0);  // by a descendant
  std::unordered_set<BlockHash> holes;
  for (auto it = forest.order.rbegin(); it != forest.order.rend(); ++it) {
    const size_t i = *it;
    const bool lost = blocks[i].epoch == epoch || blocks[i].epoch == 0;
    if (lost && needed[i] == 0) continue;
    if (lost) holes.insert(blocks[i].hash);
    if (forest.parent[i] != kNone) needed[forest.parent[i]] = 1;
  }
  return holes;
}

}  // namespace ember
