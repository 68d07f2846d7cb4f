// The shadows as one would say them: slow, and obviously right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "prefix_index/shadow_table.h"

namespace ember {

// A leaf-LRU as one would say it: times of use and children, and the leaves in order.
struct PlainLeafLru {
  struct Block {
    ShadowId parent = 0;
    uint64_t use = 0;
    uint64_t depth = 0;
    size_t children = 0;
  };
  size_t capacity;
  std::map<ShadowId, Block> blocks = {};
  std::set<std::tuple<uint64_t, uint64_t, ShadowId>> leaves = {};  // of one time the deepest first
  uint64_t now = 0;

  bool holds(ShadowId block) const { return blocks.contains(block); }
  void set_leaf(ShadowId id, bool leaf) {
    const Block& block = blocks.at(id);
    const std::tuple key{block.use, ~block.depth, id};
    leaf ? void(leaves.insert(key)) : void(leaves.erase(key));
  }
  bool make_room() {
    if (blocks.size() < capacity) return true;
    if (leaves.empty() || std::get<0>(*leaves.begin()) == now) return false;
    const ShadowId victim = std::get<2>(*leaves.begin());
    const ShadowId parent = blocks.at(victim).parent;
    set_leaf(victim, false);
    blocks.erase(victim);
    if (parent != 0 && --blocks.at(parent).children == 0) set_leaf(parent, true);
    return true;
  }
  size_t request(const std::vector<ShadowId>& chain) {
    ++now;
    size_t hits = 0;
    while (hits < chain.size() && holds(chain[hits])) {
      const ShadowId id = chain[hits++];
      set_leaf(id, false);
      blocks.at(id).use = now;
      if (blocks.at(id).children == 0) set_leaf(id, true);
    }
    for (size_t i = hits; i < chain.size() && make_room(); ++i) {
      blocks[chain[i]] = {i == 0 ? 0 : chain[i - 1], now, i, 0};
      set_leaf(chain[i], true);
      if (i == 0) continue;
      set_leaf(chain[i - 1], false);
      ++blocks.at(chain[i - 1]).children;
    }
    return hits;
  }
};

// S3-FIFO over plain deques; the oldest in front.
struct PlainS3Fifo {
  size_t capacity;
  std::deque<ShadowId> small = {}, main = {}, ghost = {};
  std::set<ShadowId> ghosts = {};     // what `ghost` has
  std::map<ShadowId, int> count = {};  // of those held

  bool holds(ShadowId block) const { return count.contains(block); }
  size_t small_capacity() const { return std::max<size_t>(1, (capacity + 5) / 10); }
  void evict() {
    while (true) {
      const bool from_small = small.size() >= small_capacity() || main.empty();
      std::deque<ShadowId>& queue = from_small ? small : main;
      const ShadowId block = queue.front();
      queue.pop_front();
      if (count[block] > 0) {
        count[block] = from_small ? 0 : count[block] - 1;
        main.push_back(block);
        continue;
      }
      count.erase(block);
      if (from_small) {
        ghost.push_back(block);
        ghosts.insert(block);
        if (ghost.size() > capacity - small_capacity()) {
          ghosts.erase(ghost.front());
          ghost.pop_front();
        }
      }
      return;
    }
  }
  size_t request(const std::vector<ShadowId>& chain) {
    size_t hits = 0;
    while (hits < chain.size() && count.contains(chain[hits])) ++hits;
    std::vector<ShadowId> missing;
    for (ShadowId block : chain) {
      if (count.contains(block)) {
        count[block] = std::min(3, count[block] + 1);
      } else {
        missing.push_back(block);
      }
    }
    std::reverse(missing.begin(), missing.end());
    for (ShadowId block : missing) {
      while (small.size() + main.size() >= capacity) evict();
      count[block] = 0;
      if (ghosts.erase(block) > 0) {
        ghost.erase(std::find(ghost.begin(), ghost.end(), block));
        main.push_back(block);
      } else {
        small.push_back(block);
      }
    }
    return hits;
  }
};

}  // namespace ember
